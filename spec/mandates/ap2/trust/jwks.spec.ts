import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { keysOfJwks, UselessKeys } from '../../../../src/mandates/ap2/trust/jwks.ts';
import { issuerKey, leakedKey } from './issuer-keys.ts';

const { jwk } = issuerKey('one');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }) as JsonObject;

function kids(keys: readonly Json[]): readonly string[] {
  return [...keysOfJwks({ keys }).keys()];
}

describe('a JWK Set of an issuer', () => {
  it('gives its keys by kid, each with the algorithm of its curve', () => {
    const keys = keysOfJwks({ keys: [jwk, issuerKey('two', 'P-384').jwk], other: 1 });
    assert.deepEqual(
      [...keys].map(([kid, { alg }]) => [kid, alg]),
      [
        ['one', 'ES256'],
        ['two', 'ES384'],
      ],
    );
  });

  const passedOver: Readonly<Record<string, Json>> = {
    'a key for encryption': { ...issuerKey('x').jwk, use: 'enc' },
    'a key that may not verify': { ...issuerKey('x').jwk, key_ops: ['deriveBits'] },
    'an RSA key': { ...rsa, kid: 'x' },
    'a shared secret': { kty: 'oct', k: 'AAAA', kid: 'x' },
    'a key with its private half': leakedKey('x'),
    'a key without kid': issuerKey('').jwk,
    'a key whose kid is too long': issuerKey('x'.repeat(513)).jwk,
    'a key whose kid is a number': { ...issuerKey('x').jwk, kid: 7 },
    'a key that says another algorithm': { ...issuerKey('x').jwk, alg: 'ES384' },
    'a point of another curve': { ...issuerKey('x', 'secp256k1').jwk, crv: 'P-256' },
    'no object': 'x',
  };
  for (const [what, other] of Object.entries(passedOver))
    it(`passes over ${what}`, () => assert.deepEqual(kids([other, jwk]), ['one']));

  it('takes neither of two keys with one kid, however often it comes', () => {
    assert.deepEqual(kids([issuerKey('x').jwk, jwk, issuerKey('x').jwk]), ['one']);
    assert.deepEqual(kids([issuerKey('x').jwk, issuerKey('x').jwk, issuerKey('x').jwk, jwk]), ['one']);
  });

  it('may have a hundred keys', () =>
    assert.equal(kids(Array.from({ length: 100 }, (_, index) => ({ ...jwk, kid: `${index}` }))).length, 100));

  const useless: Readonly<Record<string, Json>> = {
    'no object': [],
    nothing: null,
    'no list': { keys: { one: jwk } },
    'an empty list': { keys: [] },
    'only keys for something else': { keys: [{ ...rsa, kid: 'x' }] },
    'more keys than anybody has': { keys: Array.from({ length: 101 }, (_, index) => ({ ...jwk, kid: `${index}` })) },
  };
  for (const [what, document] of Object.entries(useless))
    it(`is useless with ${what}`, () => assert.throws(() => keysOfJwks(document), UselessKeys));
});
