import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  createLiteralOrder,
  createPathGuard,
  createPathTrie,
  hasDotSegment,
  hasLiteral,
} from '../../src/passthrough/path-guard.ts';

const judge = createPathGuard([
  { template: '/reports/{city}', owner: 'report' },
  { template: '/prices.csv', owner: 'prices' },
]);

function verdict(target: string): string {
  const passage = judge(target);
  if (passage.kind === 'held') return passage.owners.map(({ owner }) => owner).join(' ');
  return passage.kind === 'refused' ? passage.reason : 'pass';
}

describe('the guard of sold paths', () => {
  it('tells escaped braces from a parameter', () => {
    const guard = createPathGuard([
      { template: '/reports/a%7B%7D{city}', owner: 'braces' },
      { template: '/reports/a{city}{day}', owner: 'two' },
    ]);
    assert.deepEqual(guard('/reports/abc'), {
      kind: 'held',
      owners: [{ template: '/reports/a{city}{day}', owner: 'two' }],
    });
  });

  for (const target of [
    ...['/reports/berlin', '/reports/berlin?x=1', '/reports/berlin/', '/Reports/berlin', '/%72eports/berlin'],
    ...['/%52eports/berlin', '/reports/', '/reports/z%C3%BCrich', '/reports/%20', '/reports%20/berlin'],
    ...['/reports/berlin/...', '/reports/berlin/%20'],
  ])
    it(`holds ${target} as the report`, () => assert.equal(verdict(target), 'report'));

  it('holds letters that some servers take for others without case', () => {
    assert.deepEqual(['/pr%C4%B1ces.csv', '/PR%C4%B0CES.CSV', '/report%C5%BF/berlin'].map(verdict), [
      'prices',
      'prices',
      'report',
    ]);
  });

  it('holds a path without a parameter, also with a slash behind it and in capitals', () => {
    assert.deepEqual(['/prices.csv', '/PRICES.csv/', '/prices.csv?a'].map(verdict), ['prices', 'prices', 'prices']);
  });

  for (const target of [
    ...['//reports/berlin', '/reports//berlin', '/x/../reports/berlin', '/./reports/berlin'],
    ...['/%2e/reports/berlin', '/x/.%2e/reports/berlin', '/reports/..', '/reports/.'],
    ...['/x/..%20/reports/berlin', '/x/..%C2%A0%20/reports/berlin', '/reports/%2e%2e', '/reports%2fberlin'],
    ...['/x/..%2freports/berlin', '/x/..%5creports/berlin', '/reports/a%2fb', '/reports/a%5cb'],
    ...['/reports/berlin;v=1', '/reports;v=1/berlin', '/reports/berlin%00', '/reports/berlin%0a'],
    ...['/reports%00/berlin', '/reports/berlin/;x', '/reports/z%FCrich', '/reports/%c0%af', '/reports/50%'],
    ...['//evil/reports/berlin', '/%2572eports%252fberlin', '/%25%37%32eports/berlin;', '/reports/%EF%BC%8Fb'],
    ...['/prices%2ecsv', '/;/prices.csv', '/%u0072eports/berlin', '/reports%u002fberlin'],
    ...['/%c1%b2eports/berlin', '/%e0%81%b2eports/berlin', '/%f0%80%81%b2eports/berlin'],
    ...['/reports%EF%BC%BCberlin', '/x/..%EF%BC%852freports/berlin'],
  ])
    it(`refuses ${target}, which servers read in more than one way`, () => assert.equal(verdict(target), 'ambiguous'));

  for (const target of [
    ...['http://evil/reports/berlin', 'ftp://x/reports/berlin', '*', '', 'reports/berlin', '/reports\\berlin'],
    ...['/reports/berlin#x', '/reports/berlin\u0000', '/reports/b r', '/réports/berlin'],
    `/${'a'.repeat(8_192)}`,
  ])
    it(`refuses ${JSON.stringify(target.slice(0, 40))}, which no server should be sent`, () =>
      assert.equal(verdict(target), 'target'));

  for (const target of [
    ...['/', '/index.html', '/report', '/reports', '/reports/berlin/today', '/v1/reports/berlin'],
    ...['/files/a%2Fb', '/@scope%2fname', '/a//b', '/caf%E9', '/x;jsessionid=1'],
    ...['/search?q=/reports/berlin&back=\\', '/reportsx/;v', '/100%25', '/price%2Fs.csv'],
    ...['/%u0072eport/berlin', '/%c1%b2eport/berlin', '/%f7%bf%bf%bf/berlin', '/...', `/${'a'.repeat(8_191)}`],
  ])
    it(`passes ${target.slice(0, 40)}`, () => assert.equal(verdict(target), 'pass'));

  it('passes everything well-formed when nothing is sold', () => {
    assert.equal(createPathGuard([])('//x/../y;z%zz').kind, 'pass');
  });

  it('finds the literals of a sold path in their order only, and each apart from the one before', () => {
    const orders = createPathGuard([{ template: '/orders/{id}/confirm', owner: 'order' }]);
    const targets = [
      ...['/orders/1//confirm', '/confirm/;/orders', '/orders//orders/confirm', '/orders;/x'],
      '/orders/;confirm',
    ];
    assert.deepEqual(
      targets.map((target) => orders(target).kind),
      ['refused', 'pass', 'refused', 'pass', 'pass'],
    );
  });

  it('refuses every odd path where a sold path has no literal', () => {
    const open = createPathGuard([{ template: '/{page}', owner: 'page' }]);
    assert.deepEqual([open('/a//b').kind, open('/a/b').kind, open('/a').kind], ['refused', 'pass', 'held']);
  });
});

it('a path has a literal if some segment of it is without a parameter', () => {
  assert.deepEqual(['/pages/{page}', '/{a}/x/', '/{page}', '/{a}-{b}/{c}', '/', '/p{page}'].map(hasLiteral), [
    ...[true, true, false, false, false, false],
  ]);
});

describe('dot segments', () => {
  for (const path of [
    ...['/..', '/a/./b', '/a/%2e%2E', '/a/..;x/b', '/a%2f..%2fb', '/a/%252e%252e', '/a/..%20/b', '/a/..%00'],
  ])
    it(`are found in ${path}`, () => assert.equal(hasDotSegment(path), true));

  it('are none where dots are part of a name', () => {
    assert.deepEqual(['/a', '/...', '/..a', '/a../b', '/.well-known/x', '/a/.%20b'].filter(hasDotSegment), []);
  });
});

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
