import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { JsonError, parseStrictJson } from '../../src/json/json.ts';
import { faultOf } from './reference.ts';

const faultFound = (text: string): string => {
  try {
    parseStrictJson(Buffer.from(text));
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof JsonError);
    return error.reason;
  }
};

/** Texts of strings, with and without escapes. */
const pieces = fc.constantFrom(
  ...['a', 'b', ':', '": ', '{', '}', '[', ']', ',', '1', ' ', 'é', '漢', '😀'].map((text) =>
    JSON.stringify(text).slice(1, -1),
  ),
  ...['\\\\', '\\"', '\\n', '\\/', '\\u0061', '\\u005f', '\\u00e9', '\\u0007', '\\uD83D\\uDE00', '\\ud800', '\\udc00'],
  ...['x'.repeat(48), '__proto__', 'prototype', 'constructor'],
);
const string = fc.oneof(
  { weight: 4, arbitrary: fc.array(pieces, { maxLength: 4 }).map((texts) => `"${texts.join('')}"`) },
  { weight: 1, arbitrary: fc.constantFrom('"__proto__"', '"prototype"', '"constructor"', '"\\u005f_proto__"') },
);
const names = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 30 }).map((n) => `"n${n}"`) },
  { weight: 1, arbitrary: fc.constantFrom('"a"', '"\\u0061"', '"a\\/b"', '"a/b"', '"2"', '"1"', '""') },
  { weight: 1, arbitrary: string },
);
const number = fc.oneof(
  fc.constantFrom('0', '-0', '-0.0', '1e400', '-1E+400', '1e-400', '1E5', '123456789012345', '-123456789012345'),
  fc.constantFrom(
    '9007199254740991',
    '9007199254740992',
    '-9007199254740993',
    '13.404953999999999',
    `0.${'1'.repeat(299)}`,
  ),
  fc.constantFrom('1'.repeat(299), '1'.repeat(310), `${'9'.repeat(310)}.5`, '1234567890123456789012.5', '1.5e3'),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
);
const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t\r');
const { document } = fc.letrec<{ document: string; array: string; object: string }>((tie) => ({
  document: fc.oneof(
    { maxDepth: 5 },
    string,
    number,
    fc.constantFrom('true', 'false', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(fc.array(tie('document'), { maxLength: 4 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
  object: fc
    .tuple(fc.array(fc.tuple(names, tie('document')), { maxLength: 5 }), space)
    .map(([all, gap]) => `{${gap}${all.map(([name, value]) => `${name}${gap}:${gap}${value}`).join(`,${gap}`)}${gap}}`),
}));

describe('the strict parser', () => {
  it('finds the fault that the plain rules find in any document, and reads what they allow', () =>
    fc.assert(
      fc.property(document, (text) => {
        assert.equal(faultFound(text), faultOf(text));
        if (faultOf(text) === 'ok') assert.deepEqual(parseStrictJson(Buffer.from(text)), JSON.parse(text));
      }),
      { numRuns: 5_000 },
    ));
  it('judges a document alike after one of its characters has changed', () =>
    fc.assert(
      fc.property(document, fc.nat(), fc.constantFrom(...'"\\:{}[],0e.u '), (text, place, character) => {
        const at = place % text.length;
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        // Half a character is no UTF-8, which is the fault of its own test.
        if (changed.isWellFormed()) assert.equal(faultFound(changed), faultOf(changed));
      }),
      { numRuns: 5_000 },
    ));
});
