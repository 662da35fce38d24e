import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeBase64url } from '../../../../src/mandates/ap2/token/jws.ts';

describe('strict base64url', () => {
  it('reads back whatever bytes are written', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        assert.deepEqual(decodeBase64url(Buffer.from(bytes).toString('base64url')), Buffer.from(bytes));
      }),
    ));

  it('has one spelling for any bytes: what it reads is written again as it was', () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 12, unit: fc.constantFrom(...'AQgw_-19+/= \n.') }), (text) => {
        const bytes = decodeBase64url(text);
        if (bytes !== undefined) assert.equal(bytes.toString('base64url'), text);
      }),
      { numRuns: 5_000 },
    ));

  for (const [what, text] of [
    ['padding', 'QQ=='],
    ['the other alphabet', 'ab+/'],
    ['a line break', 'QUJD\n'],
    ['a space inside', 'QU JD'],
    ['a length that no bytes have', 'QUJDR'],
    ['two characters with the last bit to spare', 'QR'],
    ['two characters with the first of four bits to spare', 'QI'],
    ['two characters with the second of four bits to spare', 'QE'],
    ['three characters with bits to spare', 'QUJ'],
    ['a letter beyond ASCII', 'QUJé'],
  ] as const)
    it(`refuses ${what}`, () => assert.equal(decodeBase64url(text), undefined));

  it('reads nothing as nothing', () => assert.deepEqual(decodeBase64url(''), Buffer.alloc(0)));
});
