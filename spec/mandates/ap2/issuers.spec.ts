import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import type { Json } from '../../../src/json/json.ts';
import {
  createTrustedIssuers,
  type IssuerSettings,
  type IssuerTrust,
  type KeyChoice,
  staticIssuer,
} from '../../../src/mandates/ap2/issuers.ts';
import { createAuthority } from '../../support/certificates.ts';
import { issuerKey } from './cases.ts';

const A = issuerKey('shared-kid');
const B = issuerKey('shared-kid');
const BANK = issuerKey('bank-1');
const SDK = issuerKey('sdk-1');
const FAR = issuerKey('far-1');
const PROVIDER = 'https://agents.example';
const JWKS: IssuerSettings = {
  id: 'https://far.example',
  role: { kind: 'mandates' },
  allowKidOnly: false,
  source: { kind: 'jwks', url: 'https://far.example/jwks.json' },
};
const DID: IssuerSettings = {
  ...JWKS,
  id: 'did:web:did.example',
  source: { kind: 'did-web', did: 'did:web:did.example', url: 'https://did.example/.well-known/did.json' },
};
const STATIC = [
  staticIssuer({ id: PROVIDER, keys: [A.jwk] }),
  staticIssuer({ id: 'https://other.example', keys: [B.jwk] }),
  staticIssuer({ id: 'https://bank.example', keys: [BANK.jwk], credentialVct: ['com.emvco.dpc'] }),
  staticIssuer({ id: 'sdk', keys: [SDK.jwk], allowKidOnly: true }),
];

/** `documents`: what each URL serves; an Error is an issuer that is away. */
function trust(
  t: TestContext,
  issuers: readonly IssuerSettings[],
  documents: Readonly<Record<string, Json | Error>> = {},
): IssuerTrust {
  const opened = createTrustedIssuers(issuers, {
    fetcher: {
      async fetch(url) {
        const found = documents[url] ?? new Error('nothing there');
        if (found instanceof Error) throw found;
        return found;
      },
    },
  });
  t.after(() => opened.close());
  return opened;
}

const choice = (parts: Partial<KeyChoice>): KeyChoice => ({ iss: undefined, kid: undefined, x5c: undefined, ...parts });
const UNKNOWN = { kind: 'refused', reason: 'unknown_key' };
const UNTRUSTED = { kind: 'refused', reason: 'untrusted_issuer' };

describe('trusted issuers', () => {
  it('iss and kid pick one key, at once, with what the issuer may root', async (t) => {
    const { find } = trust(t, STATIC);
    for (const [iss, { publicKey }] of [
      [PROVIDER, A],
      ['https://other.example', B],
    ] as const) {
      const found = find(choice({ iss, kid: 'shared-kid' }));
      assert.ok(!(found instanceof Promise) && found.kind === 'found');
      assert.deepEqual([found.issuer, found.role, found.key.alg], [iss, { kind: 'mandates' }, 'ES256']);
      assert.ok(found.key.key.equals(publicKey), 'not the key of another issuer with the same kid');
    }
    const bank = await find(choice({ iss: 'https://bank.example', kid: 'bank-1' }));
    assert.ok(bank.kind === 'found' && bank.role.kind === 'credentials' && bank.role.vct.has('com.emvco.dpc'));
  });

  it('without iss the kid picks among the issuers that allow it, and no others', async (t) => {
    const { find } = trust(t, STATIC);
    const found = await find(choice({ kid: 'sdk-1' }));
    assert.ok(found.kind === 'found' && found.issuer === 'sdk');
    for (const kid of ['bank-1', 'shared-kid', undefined]) assert.deepEqual(await find(choice({ kid })), UNTRUSTED);
  });

  const refused: readonly (readonly [title: string, choice: Partial<KeyChoice>, answer: object])[] = [
    ['an issuer that is not configured', { iss: 'https://stranger.example', kid: 'sdk-1' }, UNTRUSTED],
    ['an issuer in another spelling', { iss: `${PROVIDER}/`, kid: 'shared-kid' }, UNTRUSTED],
    ['an empty issuer', { iss: '', kid: 'sdk-1' }, UNTRUSTED],
    ['the name of a member of objects', { iss: '__proto__', kid: 'x' }, UNTRUSTED],
    ['an unknown kid', { iss: PROVIDER, kid: 'x' }, UNKNOWN],
    ['no kid', { iss: PROVIDER }, UNKNOWN],
    ['the kid of another issuer', { iss: PROVIDER, kid: 'bank-1' }, UNKNOWN],
    ['certificates instead of a kid', { iss: PROVIDER, x5c: ['AAAA'] }, UNKNOWN],
  ];
  for (const [title, parts, answer] of refused)
    it(`refuses ${title}`, async (t) => assert.deepEqual(await trust(t, STATIC).find(choice(parts)), answer));

  it('remote keys come from a JWK Set or a DID document', async (t) => {
    const did = 'did:web:did.example';
    const method = { id: `${did}#one`, controller: did, publicKeyJwk: issuerKey('one').jwk };
    const { find, check } = trust(t, [JWKS, DID], {
      'https://far.example/jwks.json': { keys: [FAR.jwk] },
      'https://did.example/.well-known/did.json': { id: did, assertionMethod: [method] },
    });
    for (const [iss, kid] of [
      [JWKS.id, 'far-1'],
      [did, `${did}#one`],
      [did, '#one'],
    ] as const) {
      const found = await find(choice({ iss, kid }));
      assert.ok(found.kind === 'found' && found.issuer === iss, `${iss} ${kid}`);
    }
    assert.deepEqual(await check(), { found: 'ok' });
    assert.deepEqual(await find(choice({ iss: JWKS.id })), UNKNOWN);
  });

  it('certificates count for the issuer that has roots, and its kid does not', async (t) => {
    const authority = createAuthority('Bank');
    const { certificate } = authority.issue();
    const roots = [new X509Certificate(authority.certificate)];
    const bank: IssuerSettings = {
      ...{ id: 'https://localhost', role: { kind: 'mandates' }, allowKidOnly: false },
      source: { kind: 'x5c', host: 'localhost', roots },
    };
    const { find } = trust(t, [bank]);
    const x5c = [new X509Certificate(certificate).raw.toString('base64')];
    assert.equal((await find(choice({ iss: bank.id, x5c }))).kind, 'found');
    assert.deepEqual(await find(choice({ iss: bank.id, kid: 'x' })), UNKNOWN);
    assert.deepEqual(await find(choice({ x5c })), UNTRUSTED);
  });

  it('a token without a kid, or without anything that names a key, has nothing fetched', async (t) => {
    let fetches = 0;
    let now = 0;
    const fetcher = {
      async fetch() {
        fetches += 1;
        return { keys: [FAR.jwk] };
      },
    };
    // Only static issuers can allow it; a remote one with this setting has no keys to be named by.
    const settings = { ...JWKS, allowKidOnly: true };
    const opened = createTrustedIssuers([settings], { fetcher, monotonic: () => now });
    t.after(() => opened.close());
    await opened.check();
    now = 60_000;
    assert.deepEqual(await opened.find(choice({ iss: JWKS.id })), UNKNOWN);
    assert.deepEqual(await opened.find(choice({ kid: 'far-1' })), UNTRUSTED);
    assert.equal(fetches, 1);
  });

  it('nothing is fetched any more once they are closed', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    let fetches = 0;
    const fetcher = {
      async fetch(): Promise<Json> {
        fetches += 1;
        throw new Error('away');
      },
    };
    const opened = createTrustedIssuers([JWKS], { fetcher });
    await opened.check();
    t.mock.timers.tick(30_000);
    await opened.check();
    assert.equal(fetches, 2);
    opened.close();
    t.mock.timers.tick(30_000);
    await opened.check();
    assert.equal(fetches, 2);
  });

  describe('readiness', () => {
    it('passes without any issuer', async (t) => assert.deepEqual(await trust(t, []).check(), { found: 'ok' }));
    const away = new Error('connection refused');
    it('passes without remote issuers', async (t) => assert.deepEqual(await trust(t, STATIC).check(), { found: 'ok' }));
    it('is unreachable when no issuer has a key, and names issuers and causes for the log', async (t) => {
      const opened = trust(t, [JWKS, DID], { 'https://far.example/jwks.json': away });
      assert.deepEqual(await opened.check(), {
        found: 'unreachable',
        cause: 'no_keys: https://far.example (connection refused), did:web:did.example (nothing there)',
      });
      const found = await opened.find(choice({ iss: JWKS.id, kid: 'far-1' }));
      assert.equal(found.kind, 'unavailable');
    });
    it('is degraded when one of several has none: the others are served', async (t) => {
      const opened = trust(t, [...STATIC, JWKS], { 'https://far.example/jwks.json': away });
      assert.deepEqual(await opened.check(), {
        found: 'degraded',
        cause: 'keys_stale: https://far.example (connection refused)',
      });
      assert.equal((await opened.find(choice({ iss: PROVIDER, kid: 'shared-kid' }))).kind, 'found');
    });
  });
});
