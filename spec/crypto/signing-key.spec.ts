import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { describe, it } from 'node:test';
import { keySet, readSigningKey, type SigningKey, signDocument } from '../../src/crypto/signing-key.ts';

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PEM = p256.privateKey.export(pkcs8).toString();

function keyOf(pem: string): SigningKey {
  const reading = readSigningKey(pem);
  assert.ok(reading.ok);
  return reading.key;
}

describe('a signing key', () => {
  it('publishes its public half and nothing else', () => {
    const { publicJwk, ...others } = keyOf(PEM);
    assert.deepEqual(Object.keys(others), ['sign']);
    assert.deepEqual(Object.keys(publicJwk).toSorted(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    const { x, y } = p256.publicKey.export({ format: 'jwk' });
    assert.deepEqual([publicJwk.x, publicJwk.y], [x, y]);
    assert.deepEqual(keySet([keyOf(PEM).publicJwk]), { keys: [publicJwk] });
  });

  it('is named by the thumbprint of RFC 7638, whatever the spelling of the file', () => {
    // The key of RFC 7515, appendix A.3; its thumbprint as the library `jose` gives it.
    const jwk = {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
    };
    const pem = createPrivateKey({ key: jwk, format: 'jwk' }).export(pkcs8).toString();
    for (const spelling of [pem, pem.trimEnd(), pem.replaceAll('\n', '\r\n')])
      assert.equal(keyOf(spelling).publicJwk.kid, 'oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U');
  });

  it('signs as ES256 wants it: r and s, 32 bytes each', () => {
    const key = keyOf(PEM);
    const signature = Buffer.from(key.sign('a text with ü'), 'base64url');
    assert.equal(signature.length, 64);
    const { x, y } = key.publicJwk;
    const read = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
    const how = { key: read, dsaEncoding: 'ieee-p1363' } as const;
    assert.ok(verify('sha256', Buffer.from('a text with ü'), how, signature));
    assert.ok(!verify('sha256', Buffer.from('another text'), how, signature));
  });

  it('a document is signed in its canonical form, under a header with the URL of the key', () => {
    const key = keyOf(PEM);
    const one = signDocument({ b: 1, a: [true, null] }, key, 'https://shop.example/.well-known/jwks.json');
    const header = JSON.parse(Buffer.from(one.protected, 'base64url').toString()) as object;
    const { kid } = key.publicJwk;
    const jku = 'https://shop.example/.well-known/jwks.json';
    assert.deepEqual(header, { alg: 'ES256', kid, typ: 'JOSE', jku });
    const signed = `${one.protected}.${Buffer.from('{"a":[true,null],"b":1}').toString('base64url')}`;
    const how = { key: p256.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    assert.ok(verify('sha256', Buffer.from(signed), how, Buffer.from(one.signature, 'base64url')));
  });

  const encrypted = { ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'secret' };
  const refused: Readonly<Record<string, string>> = {
    nothing: '',
    'no key at all': 'hello',
    'a public key': p256.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    'the older SEC1 form': p256.privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
    'an encrypted key': p256.privateKey.export(encrypted).toString(),
    'an RSA key': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pkcs8).toString(),
    'an Ed25519 key': generateKeyPairSync('ed25519').privateKey.export(pkcs8).toString(),
    'a key of curve P-384': generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export(pkcs8).toString(),
    'a key of curve secp256k1': generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
      .privateKey.export(pkcs8)
      .toString(),
    'a broken text': PEM.replace(/\n[^\n]{10}/, '\n'),
    'two keys': `${PEM}\n${PEM}`,
  };
  for (const [what, pem] of Object.entries(refused))
    it(`${what} is refused, and never quoted`, () => {
      const reading = readSigningKey(pem);
      assert.ok(!reading.ok);
      assert.match(reading.message, /^must be .*openssl genpkey/);
      for (const line of pem.split(/\r?\n/).filter((text) => text !== '')) assert.ok(!reading.message.includes(line));
    });
});
