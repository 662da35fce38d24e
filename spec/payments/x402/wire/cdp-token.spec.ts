import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type CdpKey, cdpToken, readCdpKey } from '../../../../src/payments/x402/wire/cdp-token.ts';
import type { PaymentRail } from '../../../../src/payments/x402/wire/types.ts';
import {
  type FacilitatorCall,
  type HostileFacilitator,
  type Script,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { noWriteAhead } from '../hostile-answers.ts';
import { remoteRail } from '../remote.ts';
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
  const refusals: (string | undefined)[] = [];
  let facilitator: HostileFacilitator;
  let rails: readonly (readonly [TestKey, PaymentRail & { close(): Promise<void> }])[];

  before(async () => {
    facilitator = await startHostileFacilitator(terms.network);
    rails = [ed25519, p256].map((key) => {
      const auth = { type: 'cdp', keyId: idOf(key), keySecret: key.secret } as const;
      return [key, remoteRail([facilitator.url], { network: terms.network }, auth)];
    });
  });
  beforeEach(() => {
    refusals.length = 0;
    const refusalOf = cdpChecker(known([ed25519, p256]), () => Math.floor(Date.now() / 1_000));
    const checked =
      (answer: Script): Script =>
      (call) => {
        const refusal = refusalOf({ authorization: authorizationOf(call), request: requestOf(call) });
        refusals.push(refusal);
        return refusal === undefined ? answer(call) : { kind: 'json', status: 401, body: { error: refusal } };
      };
    facilitator.script({
      verify: checked(() => ({ kind: 'json', body: { isValid: true } })),
      settle: checked(() => ({
        kind: 'json',
        body: { success: true, transaction: `0x${'cd'.repeat(32)}`, network: terms.network },
      })),
      supported: checked(() => ({
        kind: 'json',
        body: { kinds: [{ x402Version: 2, scheme: 'exact', network: terms.network }] },
      })),
    });
  });
  after(async () => {
    for (const [, rail] of rails) await rail.close();
    await facilitator.stop();
  });

  it('accepts every request of both kinds of keys', async () => {
    for (const [, rail] of rails)
      for (let call = 0; call < 20; call += 1) {
        const proof = await genuineProof(freshAccount(), terms);
        assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
        assert.equal((await rail.settle(proof, offer, noWriteAhead)).kind, 'settled');
      }
    assert.equal(refusals.length, 80);
    assert.ok(
      refusals.every((refusal) => refusal === undefined),
      String(refusals),
    );
  });

  it('is asked again with another token when a connection broke', async () => {
    const tokens: (string | undefined)[] = [];
    facilitator.script({
      verify(call) {
        tokens.push(authorizationOf(call));
        return tokens.length === 1 ? { kind: 'reset' } : { kind: 'json', body: { isValid: true } };
      },
    });
    const [[, rail] = assert.fail('no rail')] = rails;
    assert.deepEqual(await rail.verify(await genuineProof(freshAccount(), terms), offer), { kind: 'valid' });
    assert.equal(new Set(tokens).size, 2);
  });

  it('gives no verdict with its 401', async () => {
    const auth = { type: 'cdp', keyId: 'unknown', keySecret: ed25519.secret } as const;
    const stranger = remoteRail([facilitator.url], { network: terms.network }, auth);
    try {
      const verdict = await stranger.verify(await genuineProof(freshAccount(), terms), offer);
      assert.equal(verdict.kind, 'unavailable');
      assert.deepEqual(refusals, ['names no known key']);
    } finally {
      await stranger.close();
    }
  });
});

describe('a login that was changed', () => {
  const request = 'POST api.example/platform/v2/x402/settle';
  /** Signed again after a change; `undefined` removes a member. */
  const resigned = (inHead: object, inClaims: object): string => {
    const [head = '', claims = ''] = tokenOf(ed25519).split('.');
    const text = [
      { ...decoded(head), ...inHead },
      { ...decoded(claims), ...inClaims },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${sign(null, Buffer.from(text), ed25519.privateKey).toString('base64url')}`;
  };
  const mutations: readonly (readonly [what: string, token: () => string, refusal: string])[] = [
    ['another signature', () => `${tokenOf(ed25519).slice(0, -6)}AAAAAA`, 'has a wrong signature'],
    ['no signature', () => `${tokenOf(ed25519).split('.').slice(0, 2).join('.')}.`, 'is no token of three parts'],
    ['another key id', () => resigned({ kid: 'other' }, {}), 'names no known key'],
    ['another algorithm', () => resigned({ alg: 'none' }, {}), 'is of another algorithm or type'],
    ['no nonce', () => resigned({ nonce: undefined }, {}), 'has no nonce'],
    ['another subject', () => resigned({}, { sub: 'other' }), 'has another subject'],
    ['another issuer', () => resigned({}, { iss: 'other' }), 'has another issuer'],
    ['a longer life', () => resigned({}, { exp: NOW_SECONDS + 121 }), 'lasts too long'],
    ['a later start', () => resigned({}, { nbf: NOW_SECONDS + 60 }), 'is not valid yet'],
    ['an end that is past', () => resigned({}, { exp: NOW_SECONDS }), 'has ended'],
    ['another host', () => resigned({}, { uris: [request.replace('api.', 'evil.')] }), 'is for another request'],
    ['a second request', () => resigned({}, { uris: [request, request] }), 'is for another request'],
  ];
  for (const [what, token, refusal] of mutations)
    it(`is refused: ${what}`, () => {
      const refusalOf = cdpChecker(new Map([[KEY_ID, publicHalf(ed25519.privateKey, 'EdDSA')]]), () => NOW_SECONDS);
      assert.equal(refusalOf({ authorization: `Bearer ${token()}`, request }), refusal);
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

function idOf({ alg }: TestKey): string {
  return `key-${alg}`;
}

function known(keys: readonly TestKey[]): ReadonlyMap<string, KnownKey> {
  return new Map(keys.map((key) => [idOf(key), publicHalf(key.privateKey, key.alg)]));
}

function authorizationOf({ headers }: FacilitatorCall): string | undefined {
  const { authorization } = headers;
  return typeof authorization === 'string' ? authorization : undefined;
}

function requestOf({ path, headers }: FacilitatorCall): string {
  return `${path === '/supported' ? 'GET' : 'POST'} ${String(headers['host'])}${path}`;
}
