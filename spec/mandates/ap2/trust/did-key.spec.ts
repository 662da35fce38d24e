import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { isDidKey, keysOfDidKey } from '../../../../src/mandates/ap2/did.ts';
import { multikeyOf } from './issuer-keys.ts';

/** From the test vectors of the did:key method. */
const PUBLISHED: readonly (readonly [curve: string, alg: string, name: string, x: string])[] = [
  [
    'P-256',
    'ES256',
    'zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169',
    'fyNYMN0976ci7xqiSdag3buk-ZCwgXU4kz9XNkBlNUI',
  ],
  [
    'Ed25519',
    'EdDSA',
    'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
    'Lm_M42cB3HkUiODQsXRcweM6TByfzEHGO9ND274JcOY',
  ],
  [
    'secp256k1',
    'ES256K',
    'zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme',
    'h0wVx_2iDlOcblulc8E5iEw1EYh5n1RYtLQfeSTyNc0',
  ],
];

function wholePoint(): Buffer {
  const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  return Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
}

/** `1z` and `2l` are one number if a foreign letter counts as -1. */
function otherSpelling(): string {
  for (;;) {
    const name = multikeyOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey);
    if (name.includes('1z')) return name.replace('1z', '2l');
  }
}

describe('did:key', () => {
  for (const [curve, alg, name, x] of PUBLISHED)
    it(`reads the published example of ${curve}, under its full and its relative name`, () => {
      const did = `did:key:${name}`;
      assert.ok(isDidKey(did));
      const keys = keysOfDidKey(did);
      assert.deepEqual([...(keys ?? new Map()).keys()], [`${did}#${name}`, `#${name}`]);
      const found = keys?.get(`#${name}`);
      assert.equal(found?.alg, alg);
      assert.equal(found?.key.export({ format: 'jwk' }).x, x);
    });

  it('reads any key of its curves as it was written', () => {
    for (const curve of ['P-256', 'secp256k1'] as const)
      for (let round = 0; round < 20; round += 1) {
        const { publicKey } = generateKeyPairSync('ec', { namedCurve: curve });
        const [found] = keysOfDidKey(`did:key:${multikeyOf(publicKey)}`)?.values() ?? [];
        assert.deepEqual(found?.key.export({ format: 'jwk' }), publicKey.export({ format: 'jwk' }));
      }
  });

  const name = 'zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169';
  const refused: Readonly<Record<string, string>> = {
    nothing: '',
    'another base': `m${name.slice(1)}`,
    // A letter that counts as one less than nothing would make the same number.
    'a letter that base58 does not have': otherSpelling(),
    'a leading zero': `z1${name.slice(1)}`,
    'one byte less': name.slice(0, -2),
    'a text that is too long': `z${'D'.repeat(1_000)}`,
    'a fragment behind it': `${name}#${name}`,
    // x = 5 is on no point of P-256 with y as a square root.
    'a point beside the curve': multikeyOf(Buffer.from(`8024${'02'}${'0'.repeat(63)}1`, 'hex')),
    'a point that is not compressed': multikeyOf(Buffer.concat([Buffer.from('8024', 'hex'), wholePoint()])),
    'a point that is not compressed by its first byte': multikeyOf(Buffer.from(`8024${'04'}${'1'.repeat(64)}`, 'hex')),
    'half an Ed25519 key': multikeyOf(Buffer.from(`ed01${'1'.repeat(32)}`, 'hex')),
    'the code of another key': multikeyOf(Buffer.from(`8124${'02'}${'1'.repeat(64)}`, 'hex')),
  };
  for (const [what, text] of Object.entries(refused))
    it(`refuses ${what}`, () => assert.equal(keysOfDidKey(`did:key:${text}`), undefined));
});
