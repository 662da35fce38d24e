import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeBase64url, MAX_TOKEN_DEPTH, readToken } from '../../../../src/mandates/ap2/sd-jwt.ts';

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

const base64url = (text: string): string => Buffer.from(text, 'utf8').toString('base64url');
const jws = (head: string, payload: string): string => `${base64url(head)}.${base64url(payload)}.AAAA`;
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const reasonOf = (text: string): string => {
  const reading = readToken(text);
  return reading.ok ? 'none' : reading.reason;
};

describe('a token is taken apart', () => {
  it('into head, claims, signature, and what was signed', () => {
    const text = jws('{"alg":"ES256"}', '{"iat":1}');
    assert.deepEqual(readToken(text), {
      ok: true,
      token: {
        header: { alg: 'ES256' },
        claims: { iat: 1 },
        signature: Buffer.alloc(3),
        signingInput: text.slice(0, text.lastIndexOf('.')),
      },
    });
  });
  it('also without a signature, which is checked later', () =>
    assert.equal(reasonOf(jws('{}', '{}').slice(0, -4)), 'none'));
  it(`down to ${MAX_TOKEN_DEPTH} levels`, () =>
    assert.equal(reasonOf(jws('{}', `{"a":${nested(MAX_TOKEN_DEPTH - 1)}}`)), 'none'));
});

describe('a token is malformed', () => {
  const right = jws('{}', '{}');
  for (const [what, text] of [
    ['with two parts', right.slice(0, right.lastIndexOf('.'))],
    ['with four parts', `${right}.AAAA`],
    ['with an empty head', right.slice(right.indexOf('.'))],
    ['with an empty payload', `${base64url('{}')}..AAAA`],
    ['with a padded part', right.replace('.', '=.')],
    ['with a head in a second spelling', `e31${right.slice(3)}`],
    ['with a payload in a second spelling', `${base64url('{}')}.e31.AAAA`],
    ['with a signature in a second spelling', `${right.slice(0, -4)}AAB`],
    ['with a list as payload', jws('{}', '[]')],
    ['with a list as head', jws('[]', '{}')],
    ['with null as payload', jws('{}', 'null')],
    ['with a text as payload', jws('{}', '"inexact"')],
    ['with a claim twice', jws('{}', '{"aud":"a","aud":"b"}')],
    ['with a header twice', jws('{"alg":"a","alg":"b"}', '{}')],
    ['with __proto__', jws('{}', '{"__proto__":{}}')],
    ['with one level too many', jws('{}', `{"a":${nested(MAX_TOKEN_DEPTH)}}`)],
    ['with no UTF-8', `${base64url('{}')}.${Buffer.of(0x7b, 0xff, 0x7d).toString('base64url')}.AAAA`],
  ] as const)
    it(what, () => assert.equal(reasonOf(text), 'mandate_malformed'));
});

describe('a token has invalid claims', () => {
  it('with a number that a double cannot hold', () => {
    for (const number of ['9007199254740993', '1e400'])
      assert.equal(reasonOf(jws('{}', `{"exp":${number}}`)), 'claims_invalid');
    assert.equal(reasonOf(jws('{"n":1e400}', '{}')), 'claims_invalid');
  });
});
