import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import { createTrustedIssuers, type IssuerTrust } from '../../../src/mandates/ap2/issuers.ts';
import { createKeyFetcher, type KeyFetcher } from '../../../src/mandates/ap2/remote-keys.ts';
import { createMandateVerifier } from '../../../src/mandates/ap2/verify.ts';
import { createKey, PROVIDER, publishedJwk, type TestKey } from '../../support/ap2/keys.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';

const MINUTE = 60_000;

describe('an issuer that changes its keys', () => {
  const mint = createMint();
  const next = createKey('next-key');
  let published: readonly TestKey[] = [mint.parties.provider];
  let away = false;
  let fetches = 0;
  let now = 0;
  let server: Server;
  let fetcher: KeyFetcher;
  let trust: IssuerTrust;
  let verdict: (key: TestKey) => Promise<string>;

  before(async () => {
    server = createServer((_req, res) => {
      fetches += 1;
      if (away) res.destroy();
      else res.end(JSON.stringify({ keys: published.map(({ publicJwk }) => publicJwk) }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
    fetcher = createKeyFetcher({ plainOnLoopback: true });
    const role = { kind: 'mandates' } as const;
    trust = createTrustedIssuers([{ id: PROVIDER, role, allowKidOnly: false, source: { kind: 'jwks', url } }], {
      fetcher,
      monotonic: () => now,
    });
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust,
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    verdict = async (key) => {
      const { header } = mint.autonomous({ issuer: { key, iss: PROVIDER } });
      const result = await verifier({ kind: 'text', value: header }, purchaseWith(), NOW);
      return result.kind === 'accepted' ? result.kind : result.reason;
    };
  });
  after(async () => {
    trust.close();
    await fetcher.close();
    server.closeAllConnections();
    server.close();
  });

  it('many first calls at once cost one fetch, and are accepted', async () => {
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => verdict(mint.parties.provider)));
    assert.deepEqual(new Set(verdicts), new Set(['accepted']));
    assert.equal(fetches, 1);
  });

  it('a key that it has not published is unknown, and soon known when it has', async () => {
    now = MINUTE;
    assert.equal(await verdict(next), 'unknown_key');
    published = [mint.parties.provider, next];
    assert.equal(await verdict(next), 'unknown_key', 'within 30 s it is not asked again');
    now = 2 * MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal(fetches, 3);
  });

  it('its keys are used while it is away', async () => {
    away = true;
    now = 20 * MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal((await trust.check()).found, 'degraded');
  });

  it('after a day without an answer its mandates cannot be checked, which is no fault of theirs', async () => {
    now = 25 * 60 * MINUTE;
    assert.equal(await verdict(next), 'provider_unavailable');
    assert.equal((await trust.check()).found, 'unreachable');
  });

  it('a key that it removed is unknown', async () => {
    away = false;
    published = [next];
    now += MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal(await verdict(mint.parties.provider), 'unknown_key');
  });
});
