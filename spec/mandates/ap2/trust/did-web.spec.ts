import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../../../src/json/types.ts';
import { didWebUrl, keysOfDidDocument } from '../../../../src/mandates/ap2/did.ts';
import { UselessKeys } from '../../../../src/mandates/ap2/keys.ts';
import { issuerKey, leakedKey, multikeyOf } from './issuer-keys.ts';

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
