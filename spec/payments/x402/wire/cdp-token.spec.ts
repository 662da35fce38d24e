import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, it } from 'node:test';
import { type CdpKey, cdpToken, readCdpKey } from '../../../../src/payments/x402/wire/cdp-token.ts';
import { type Script, startHostileFacilitator } from '../../../support/hostile-facilitator.ts';
import { noWriteAhead, remoteRail } from '../hostile.ts';
import { freshAccount, genuineProof, offerFor, termsFor } from '../signing.ts';
import { cdpChecker, type KnownKey, publicHalf } from './cdp-checker.ts';

const KEY_ID = 'organizations/test/apiKeys/made-for-this-test';
const REQUEST = { method: 'POST', host: 'api.example', path: '/platform/v2/x402/settle' };
const NOW_SECONDS = 1_795_355_206;

interface TestKey {
  /** As it is configured. */
  readonly secret: string;
  readonly privateKey: KeyObject;
  readonly alg: KnownKey['alg'];
}

const ed25519 = ed25519Key();
const p256 = p256Key('pkcs8');
const KEYS: readonly (readonly [what: string, key: TestKey])[] = [
  ['an Ed25519 key in base64', ed25519],
  ['a P-256 key in PKCS#8', p256],
  ['a P-256 key in the older form of PEM', p256Key('sec1')],
];

describe('the secret of a CDP API key', () => {
  for (const [what, { secret, alg }] of KEYS)
    it(`${what} signs with ${alg}`, () => assert.equal(read(secret).alg, alg));

  const other = Buffer.from(ed25519Key().secret, 'base64').subarray(32);
  const mixed = Buffer.concat([Buffer.from(ed25519.secret, 'base64').subarray(0, 32), other]).toString('base64');
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
  for (const [what, secret, message] of [
    ['a seed alone', Buffer.alloc(32, 7).toString('base64'), /64 bytes as base64, or a private key as PEM/],
    ['the public key of another seed', mixed, /are not the public key of its first 32/],
    ['a file name', '/run/secrets/cdp-key', /64 bytes as base64, or a private key as PEM/],
    ['a PEM that cannot be read', '-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----', /can be read/],
    ['a key of another curve', pem(p384, 'pkcs8'), /curve P-256/],
    ['an Ed25519 key as PEM', pem(ed25519.privateKey, 'pkcs8'), /not PEM but base64/],
  ] as const)
    it(`${what} is refused without being quoted`, () => {
      const reading = readCdpKey(secret);
      assert.ok(!reading.ok);
      assert.match(reading.message, message);
      assert.ok(!reading.message.includes(secret));
    });
});

describe('a token', () => {
  for (const [what, key] of KEYS)
    it(`of ${what} is accepted once, for its request, for two minutes`, () => {
      let now = NOW_SECONDS;
      const refusalOf = cdpChecker(new Map([[KEY_ID, publicHalf(key.privateKey, key.alg)]]), () => now);
      const authorization = `Bearer ${tokenOf(key)}`;
      const request = 'POST api.example/platform/v2/x402/settle';
      assert.equal(
        refusalOf({ authorization, request: request.replace('settle', 'verify') }),
        'is for another request',
      );
      assert.equal(refusalOf({ authorization, request }), undefined);
      assert.equal(refusalOf({ authorization, request }), 'was there before');
      now += 120;
      assert.equal(refusalOf({ authorization: `Bearer ${tokenOf(key)}`, request }), 'has ended');
    });

  it('is as the official client makes it', () => {
    const [head = '', claims = ''] = tokenOf(ed25519).split('.');
    const { nonce, ...header } = decoded(head) as { readonly nonce: string };
    assert.deepEqual(header, { alg: 'EdDSA', kid: KEY_ID, typ: 'JWT' });
    assert.match(nonce, /^[0-9a-f]{32}$/);
    assert.deepEqual(decoded(claims), {
      sub: KEY_ID,
      iss: 'cdp',
      uris: ['POST api.example/platform/v2/x402/settle'],
      iat: NOW_SECONDS,
      nbf: NOW_SECONDS,
      exp: NOW_SECONDS + 120,
    });
  });
});

describe('a facilitator that checks each login', () => {
  const terms = termsFor();
  const offer = offerFor(terms);

  for (const key of [ed25519, p256])
    it(`accepts every request of an ${key.alg} key, also one that is sent again, each with a token of its own`, async (t) => {
      const facilitator = await startHostileFacilitator(terms.network);
      const auth = { type: 'cdp', keyId: KEY_ID, keySecret: key.secret } as const;
      const rail = remoteRail([facilitator.url], { network: terms.network }, auth);
      t.after(() => Promise.all([rail.close(), facilitator.stop()]));
      const known = new Map([[KEY_ID, publicHalf(key.privateKey, key.alg)]]);
      const refusalOf = cdpChecker(known, () => Math.floor(Date.now() / 1_000));
      const refusals: unknown[] = [];
      const checked = (method: 'GET' | 'POST', body: object): Script => {
        return ({ path, headers }) => {
          const request = `${method} ${String(headers['host'])}${path}`;
          refusals.push(refusalOf({ authorization: String(headers['authorization']), request }));
          return refusals.length === 1 ? { kind: 'reset' } : { kind: 'json', body };
        };
      };
      facilitator.script({
        verify: checked('POST', { isValid: true }),
        settle: checked('POST', { success: true, transaction: `0x${'cd'.repeat(32)}`, network: terms.network }),
        supported: checked('GET', { kinds: [{ x402Version: 2, scheme: 'exact', network: terms.network }] }),
      });
      const proof = await genuineProof(freshAccount(), terms);
      assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
      assert.equal((await rail.settle(proof, offer, noWriteAhead)).kind, 'settled');
      assert.equal(await rail.check(), undefined);
      assert.deepEqual(refusals, [undefined, undefined, undefined, undefined]);
    });
});

function tokenOf({ secret }: TestKey): string {
  return cdpToken(KEY_ID, read(secret), REQUEST, NOW_SECONDS * 1_000);
}

function read(secret: string): CdpKey {
  const reading = readCdpKey(secret);
  assert.ok(reading.ok, reading.ok ? '' : reading.message);
  return reading.key;
}

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
}

function ed25519Key(): TestKey {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  const secret = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64');
  return { secret, privateKey, alg: 'EdDSA' };
}

function p256Key(form: 'pkcs8' | 'sec1'): TestKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { secret: pem(privateKey, form), privateKey, alg: 'ES256' };
}

function pem(key: KeyObject, type: 'pkcs8' | 'sec1'): string {
  return String(key.export({ type, format: 'pem' }));
}
