import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import fc from 'fast-check';
import { urlTest } from '../../../src/resources/patterns/formats.ts';

const RUNS = 200_000;
/** In which two of the signs that decide often meet. */
const PIECES = [
  'http://',
  'FTP://',
  'a',
  'b.co',
  'x-y.shop',
  '1.2.3.4',
  '10.0.0.1',
  ':',
  ':80',
  '@',
  '/',
  '?',
  '#',
  '.',
  '-',
];
const SPACES = [' ', '\n', '\u3000', '\u00a0', '\u2028', '\ud83d\ude00', '\ud83d'];

describe('the format url', () => {
  const original = fullFormats.url instanceof RegExp ? fullFormats.url : assert.fail('is an expression no more');
  const isUrl = urlTest(original);

  it('is what the validator’s own expression says', () => {
    const texts = fc
      .array(fc.constantFrom(...PIECES, ...PIECES, ...SPACES), { maxLength: 12 })
      .map((pieces) => `http://${pieces.join('')}`);
    let accepted = 0;
    fc.assert(
      fc.property(texts, (text) => {
        const verdict = original.test(text);
        if (verdict) accepted += 1;
        assert.equal(isUrl(text), verdict);
      }),
      { numRuns: RUNS },
    );
    assert.ok(accepted > RUNS / 100, `${accepted} texts were accepted`);
  });

  const host = `${'a'.repeat(247)}.co`;
  for (const [text, verdict] of [
    ['https://shop.example/path?x=@', true],
    ['shop.example', false],
    ['mailto:a@shop.example', false],
    ['http://@shop.example', false],
    ['http://a/b@shop.example/c', true],
    [`http://${'u'.repeat(3_000)}@shop.example`, true],
    [`http://shop.example/${'@:'.repeat(1_500)}`, true],
    [`http://${host}:65535`, true],
    [`http://${'a'.repeat(10)}${host}:65535`, false],
  ] as const)
    it(`${verdict ? 'takes' : 'refuses'} ${text.slice(0, 40)}`, () => assert.equal(isUrl(text), verdict));
});
