import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createLiteralOrder, createPathTrie } from '../../src/passthrough/path-guard.ts';

const PARAMETER = /\{[^{}]*\}/;
const literal = fc.string({ unit: fc.constantFrom('a', 'b', 'B', '.', ' '), maxLength: 3 });
const segment = fc.oneof(
  { arbitrary: literal, weight: 3 },
  fc.array(literal, { minLength: 2, maxLength: 3 }).map((literals) => literals.join('{x}')),
);
const template = fc.record({ segments: fc.array(segment, { maxLength: 3 }), below: fc.boolean() });
const path = fc.array(literal, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join('/')}`);

interface Template {
  readonly segments: readonly string[];
  readonly below: boolean;
}

/** The same question put to one expression for each template. */
function expressionOf({ segments, below }: Template, trims: boolean): RegExp {
  const trimmable = trims ? '[ .]*' : '';
  const source = segments.map((text) => {
    // Where they do not count behind a segment, they do not count behind that of a template.
    const counted = trims && !PARAMETER.test(text) ? text.replace(/[ .]+$/, '') : text;
    return `/${counted
      .split(PARAMETER)
      .map((part) => RegExp.escape(part))
      .join('[^/]*')}${trimmable}`;
  });
  const end = trims && !below ? '(?:/[ .]*)?' : '';
  return new RegExp(`^${source.join('')}${below ? '(?:/.*)?' : end}$`, 's');
}

describe('many templates at once', () => {
  for (const trims of [true, false])
    it(`are what one expression for each says, ${trims ? 'with' : 'without'} trimming`, () => {
      fc.assert(
        fc.property(fc.array(template, { maxLength: 12 }), fc.array(path, { maxLength: 8 }), (templates, paths) => {
          const fitting = createPathTrie(
            templates.map(({ segments, below }, owner) => ({
              segments: segments.map((text) => text.split(PARAMETER)),
              below,
              owner,
            })),
            trims,
          );
          const expressions = templates.map((one) => expressionOf(one, trims));
          for (const one of paths)
            assert.deepEqual(
              fitting(one),
              expressions.flatMap((expression, owner) => (expression.test(one) ? [owner] : [])),
              JSON.stringify(one),
            );
        }),
        { numRuns: 150 },
      );
    });

  it('may be thousands of alike ones, of which a path is one', () => {
    const templates = Array.from({ length: 10_000 }, (_, owner) => ({ segments: [[`a${owner}-`, '']], owner }));
    assert.deepEqual(createPathTrie(templates, true)('/a9999-x'), [9_999]);
  });
});

describe('the literals of many paths', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '.', ' '), minLength: 1, maxLength: 2 });
  const text = fc.string({ unit: fc.constantFrom('/', 'a', 'b', '.', ';', ' ', '\u0001'), maxLength: 16 });

  it('stand in a text in the order of one of them, as an expression for each literal says', () => {
    fc.assert(
      fc.property(fc.array(fc.array(word, { maxLength: 3 }), { maxLength: 8 }), text, (lists, one) => {
        const expected = lists.some((literals) => {
          let at = 0;
          return literals.every((part) => {
            const expression = new RegExp(`/${RegExp.escape(part)}(?=[/;?#.\\s\\p{Cc}]|$)`, 'gu');
            expression.lastIndex = at;
            const found = expression.test(one);
            at = expression.lastIndex;
            return found;
          });
        });
        assert.equal(createLiteralOrder(lists.map((literals) => ({ literals })))(one), expected);
      }),
      { numRuns: 600 },
    );
  });
});
