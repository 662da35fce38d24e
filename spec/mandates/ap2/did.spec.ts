import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Json } from '../../../src/json/json.ts';
import { didWebUrl, isDidKey, keysOfDidDocument, keysOfDidKey } from '../../../src/mandates/ap2/did.ts';
import { UselessKeys } from '../../../src/mandates/ap2/keys.ts';
import { issuerKey, leakedKey, multikeyOf } from './cases.ts';

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

const DID = 'did:web:agents.example';
const { jwk, publicKey } = issuerKey('whatever');

describe('the URL of a did:web', () => {
  const urls: Readonly<Record<string, string | undefined>> = {
    'did:web:agents.example': 'https://agents.example/.well-known/did.json',
    'did:web:agents.example%3A8443': 'https://agents.example:8443/.well-known/did.json',
    'did:web:agents.example:issuers:one': 'https://agents.example/issuers/one/did.json',
    'did:web:': undefined,
    'did:web:localhost': undefined,
    'did:web:127.0.0.1': undefined,
    'did:web:[::1]': undefined,
    'did:web:Agents.example': undefined,
    'did:web:user@agents.example': undefined,
    'did:web:agents.example%3A99999': undefined,
    'did:web:agents.example%2Fpath': undefined,
    'did:web:agents.example:..:admin': undefined,
    'did:web:agents.example:': undefined,
    'did:web:agents.example?x': undefined,
    'did:web:agents.example#key': undefined,
  };
  for (const [did, url] of Object.entries(urls))
    it(`${did} is ${url ?? 'none'}`, () => assert.equal(didWebUrl(did), url));
});

function documentOf(method: Json, changes: { readonly [name: string]: Json } = {}): Json {
  return { id: DID, verificationMethod: [method], assertionMethod: [`${DID}#one`], ...changes };
}
const METHOD = { id: `${DID}#one`, type: 'JsonWebKey2020', controller: DID, publicKeyJwk: jwk };

describe('a DID document', () => {
  const good: Readonly<Record<string, Json>> = {
    'a JWK': documentOf(METHOD),
    'a Multikey': documentOf({
      ...{ id: `${DID}#one`, type: 'Multikey', controller: DID },
      publicKeyMultibase: multikeyOf(publicKey),
    }),
    'relative names': documentOf({ ...METHOD, id: '#one' }, { assertionMethod: ['#one'] }),
    'a method without a name beside it': documentOf(METHOD, { verificationMethod: [{ controller: DID }, METHOD] }),
    'a method that stands where it is used': { id: DID, assertionMethod: [METHOD] },
  };
  for (const [what, document] of Object.entries(good))
    it(`gives the keys of its assertions: ${what}`, () => {
      const keys = keysOfDidDocument(document, DID);
      assert.deepEqual([...keys.keys()], [`${DID}#one`, '#one']);
      for (const { key } of keys.values())
        assert.deepEqual(key.export({ format: 'jwk' }), publicKey.export({ format: 'jwk' }));
    });

  const useless: Readonly<Record<string, Json>> = {
    'no document': 'x',
    'nothing at all': null,
    'a key that is a number': documentOf({ id: `${DID}#one`, controller: DID, publicKeyMultibase: 7 }),
    'a key without a name': { id: DID, assertionMethod: [{ controller: DID, publicKeyJwk: jwk }] },
    'the document of another subject': documentOf(METHOD, { id: 'did:web:other.example' }),
    'a key for logins only': documentOf(METHOD, { assertionMethod: [], authentication: [`${DID}#one`] }),
    'no word on what keys are for': { id: DID, verificationMethod: [METHOD] },
    'a key of another controller': documentOf({ ...METHOD, controller: 'did:web:other.example' }),
    'a key under the name of another subject': documentOf(
      { ...METHOD, id: 'did:web:other.example#one' },
      { assertionMethod: ['did:web:other.example#one'] },
    ),
    'two methods of one name': documentOf(METHOD, { verificationMethod: [METHOD, METHOD] }),
    'a key with its private half': documentOf({ ...METHOD, publicKeyJwk: leakedKey('one') }),
  };
  for (const [what, document] of Object.entries(useless))
    it(`is useless with ${what}`, () => assert.throws(() => keysOfDidDocument(document, DID), UselessKeys));
});
