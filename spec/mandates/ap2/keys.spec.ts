import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Json } from '../../../src/json/json.ts';
import { checkoutKeysOf } from '../../../src/mandates/ap2/checkout.ts';
import { staticIssuer } from '../../../src/mandates/ap2/issuers.ts';
import {
  type Algorithm,
  MAX_KID_LENGTH,
  publicKeyOf,
  readPublicKey,
  readStaticKeys,
  verifySignature,
} from '../../../src/mandates/ap2/keys.ts';
import { createKey } from '../../support/ap2/keys.ts';
import { issuerKey, leakedKey, refusalOf } from './cases.ts';

const ALGORITHMS: readonly Algorithm[] = ['ES256', 'ES384', 'ES256K', 'EdDSA'];
const { publicJwk: p256, privateJwk, sign } = createKey('a');
const { publicJwk: p384 } = createKey('b', 'ES384');

const faultOf = (jwk: Json): string => {
  const reading = readPublicKey(jwk);
  return reading.ok ? 'none' : reading.fault;
};

describe('a public key', () => {
  for (const alg of ALGORITHMS)
    it(`of ${alg} verifies what its other half signed, and nothing else`, () => {
      const made = createKey('k', alg);
      const key = publicKeyOf(made.publicJwk);
      const signature = Buffer.from(made.sign('head.payload'), 'base64url');
      assert.equal(key.alg, alg);
      assert.equal(verifySignature(key, 'head.payload', signature), true);
      assert.equal(verifySignature(key, 'head.payloae', signature), false);
      assert.equal(verifySignature(publicKeyOf(createKey('k', alg).publicJwk), 'head.payload', signature), false);
    });

  const { alg: _alg, use: _use, kid: _kid, ...bare } = p256;
  const rsa: Json = { kty: 'RSA', n: 'AQAB', e: 'AQAB' };
  const ROWS: readonly (readonly [string, Json, string])[] = [
    ['with nothing but its point', bare, 'none'],
    ['that is for verifying', { ...p256, key_ops: ['verify'] }, 'none'],
    ['with its private half', privateJwk, 'private'],
    ['with a private half of null', { ...p256, d: null }, 'private'],
    ['with a symmetric secret', { ...p256, k: 'AAAA' }, 'private'],
    ['of RSA', rsa, 'unsupported'],
    ['of a curve without an algorithm here', { ...p256, crv: 'P-521' }, 'unsupported'],
    ['of no curve', { kty: 'EC' }, 'unsupported'],
    ['of a curve and the type of another', { ...p256, kty: 'OKP' }, 'unsupported'],
    ['with another algorithm', { ...p256, alg: 'ES384' }, 'unsupported'],
    ['for encryption', { ...p256, use: 'enc' }, 'malformed'],
    ['for signing alone', { ...p256, key_ops: ['sign'] }, 'malformed'],
    ['with operations that are no list', { ...p256, key_ops: 'verify' }, 'malformed'],
    ['that is no object', 'P-256', 'malformed'],
    ['that is a list', [p256], 'malformed'],
    ['without y', { ...bare, y: null }, 'malformed'],
    ['with a padded coordinate', { ...bare, x: `${bare.x}=` }, 'malformed'],
    ['with a coordinate of another curve', { ...bare, x: p384.x }, 'malformed'],
    ['beside its curve', { ...bare, x: bare.y ?? '' }, 'malformed'],
  ];
  for (const [what, jwk, fault] of ROWS) it(`${what}: ${fault}`, () => assert.equal(faultOf(jwk), fault));

  for (const missing of ['x', 'y'])
    it(`without ${missing} names what is missing`, () => {
      const reading = readPublicKey({ ...bare, [missing]: null });
      assert.match(reading.ok ? '' : reading.message, /coordinates of 32 bytes/);
    });

  it('of a token is refused with a reason of mandates', () => {
    assert.equal(
      refusalOf(() => publicKeyOf(rsa)),
      'unsupported_algorithm',
    );
    assert.equal(
      refusalOf(() => publicKeyOf(privateJwk)),
      'claims_invalid',
    );
    assert.equal(
      refusalOf(() => publicKeyOf({ ...bare, x: 'AA' })),
      'claims_invalid',
    );
  });

  it('is imported once, and checked every time', () => {
    const known = new Map<string, KeyObject>();
    const recent = {
      use: (point: string) => known.get(point),
      add: (point: string, key: KeyObject) => void known.set(point, key),
    };
    const first = publicKeyOf(p256, recent);
    assert.equal(publicKeyOf(bare, recent).key, first.key);
    assert.equal(
      refusalOf(() => publicKeyOf(privateJwk, recent)),
      'claims_invalid',
    );
    publicKeyOf(p384, recent);
    assert.equal(known.size, 2);
  });
});

describe('a signature is none', () => {
  const key = publicKeyOf(p256);
  const right = Buffer.from(sign('text'), 'base64url');
  for (const [what, signature] of [
    ['when it is empty', Buffer.alloc(0)],
    ['when it is zero', Buffer.alloc(64)],
    ['when it is a byte short', right.subarray(1)],
    ['when it is a byte long', Buffer.concat([right, Buffer.alloc(1)])],
    ['when a bit is wrong', Buffer.from(right.map((byte, at) => (at === 40 ? byte ^ 1 : byte)))],
  ] as const)
    it(what, () => assert.equal(verifySignature(key, 'text', signature), false));
});

const { jwk } = issuerKey('one');

describe('configured keys', () => {
  it('are taken by kid, the longest kid included', () => {
    const longest = 'x'.repeat(MAX_KID_LENGTH);
    const { keys, faults } = readStaticKeys([jwk, issuerKey(longest).jwk]);
    assert.deepEqual([...keys.keys()], ['one', longest]);
    assert.deepEqual(faults, []);
  });

  const bad: Readonly<Record<string, readonly [second: typeof jwk, message: RegExp]>> = {
    'has a private half': [leakedKey('two'), /private members/],
    'has a kid that is too long': [issuerKey('x'.repeat(MAX_KID_LENGTH + 1)).jwk, /1 to 512 printable/],
    'has no kid': [issuerKey('').jwk, /1 to 512 printable/],
    'has the kid of another': [issuerKey('one').jwk, /no other key here has/],
  };
  for (const [what, [second, message]] of Object.entries(bad))
    it(`a key that ${what} is named by its index, and makes no issuer`, () => {
      const { faults } = readStaticKeys([jwk, second]);
      assert.deepEqual(
        faults.map(({ index }) => index),
        [1],
      );
      assert.match(faults[0]?.message ?? '', message);
      assert.throws(() => staticIssuer({ id: 'a', keys: [jwk, second] }), /^Error: key 1 of a must /);
    });

  it('are asked for an issuer and a kid unless the kid alone was allowed', () => {
    assert.equal(staticIssuer({ id: 'a', keys: [jwk] }).allowKidOnly, false);
    assert.equal(staticIssuer({ id: 'a', keys: [jwk], allowKidOnly: true }).allowKidOnly, true);
  });
});

it('a checkout key that the configuration should have refused is an error', () =>
  assert.throws(
    () => checkoutKeysOf({ signingKey: 'none', kid: undefined, alsoTrust: [] }),
    /the configuration let a key pass/,
  ));
