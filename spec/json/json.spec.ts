import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../../src/json/json.ts';
import { canonicalJson } from '../../src/json/json.ts';

/** The same value with the members of every object in another order. */
function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => shuffled(item));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, member]): [string, Json] => [name, shuffled(member as Json)]),
  );
}
const anyJson = fc
  .jsonValue({ maxDepth: 5, stringUnit: 'grapheme' })
  .map((value) => JSON.parse(JSON.stringify(value)) as Json);

describe('the canonical form (RFC 8785)', () => {
  const ROWS: readonly (readonly [string, string])[] = [
    // RFC 8785, 3.2.2 and 3.2.3.
    [
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ],
    [
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ],
    ['[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'],
    ['-0', '0'],
    ['1e21', '1e+21'],
    ['{}', '{}'],
  ];
  for (const [text, expected] of ROWS)
    it(`of ${text.slice(0, 40)}`, () => assert.equal(canonicalJson(JSON.parse(text) as Json), expected));

  it('does not depend on the order of members', () =>
    fc.assert(
      fc.property(anyJson, (value) => canonicalJson(shuffled(value)) === canonicalJson(value)),
      { numRuns: 2_000 },
    ));
  it('is JSON of the same value, and its own canonical form', () =>
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = canonicalJson(value);
        const again = JSON.parse(text) as Json;
        assert.deepEqual(again, JSON.parse(JSON.stringify(value)));
        assert.equal(canonicalJson(again), text);
      }),
      { numRuns: 2_000 },
    ));
  it('differs for values that differ', () =>
    fc.assert(
      fc.property(anyJson, anyJson, (a, b) => {
        let equal = true;
        try {
          assert.deepStrictEqual(shuffled(a), shuffled(b));
        } catch {
          equal = false;
        }
        return equal === (canonicalJson(a) === canonicalJson(b));
      }),
      { numRuns: 2_000 },
    ));
});
