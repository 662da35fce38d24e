/**
 * What the idempotency machine adds to a checkout call, one call at a time, over a Redis on this
 * machine that writes its append-only file every second: the same POST through the gateway with
 * claims in Redis and with claims that are not kept, in turn, so that a busy machine slows both
 * alike; and each step of the machine by itself. Prints medians and 99th percentiles, microseconds.
 * Argument: how many rounds.
 */
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { type CheckoutTestbed, openCheckoutTestbed, rightHeaders } from '../../spec/adapters/acp/testbed.ts';
import { checkoutClaim, holdOf, LONG_MS } from '../../spec/store/checkout-samples.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { createAnswerSeal } from '../../src/checkouts/answer-seal.ts';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { fingerprintOf, namesOf } from '../../src/checkouts/names.ts';
import type { JsonObject } from '../../src/json/types.ts';
import { openStore } from '../../src/store/open.ts';
import { percentile } from './numbers.ts';

const NAMING = 'names and fingerprint';
const SEALING = 'seal 3 kB';
const WARM_UP = 300;
const SECRET = Buffer.alloc(32, 3);
const KEY = { id: 'k1', key: Buffer.alloc(32, 7) };
const ITEMS = 10;
const CART = {
  line_items: Array.from({ length: ITEMS }, (_, nth) => ({ id: `item_${nth}` })),
  currency: 'usd',
  capabilities: {},
};
const PAYMENT = {
  payment_data: {
    handler_id: 'card',
    instrument: { type: 'card', credential: { type: 'spt', token: 'tok_declined' } },
  },
};
const NOT_KEPT: CheckoutClaims = {
  claim: async () => ({ kind: 'granted', fence: 1 }),
  finish: async () => true,
  unknown: async () => true,
  release: async () => true,
  own: async () => true,
  ownership: async () => 'own',
};

const rounds = Number(process.argv[2] ?? 3_000);
const server = await startRedis();
const storage = { redis: { url: server.url } };
const limits = { rate: { perSecond: 100_000, burst: 100_000 } };
const kept = await openCheckoutTestbed({ storage, overrides: { limits } });
const unkept = await openCheckoutTestbed({ storage, overrides: { limits }, checkouts: NOT_KEPT });
const store = await openStore({ ...kept.gateway.config.storage, merchantId: 'bench' });
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

/**
 * A complete that the bank declines: the session stays as it was, so that the same one can be
 * completed again.
 */
async function openSession({ gateway }: CheckoutTestbed): Promise<() => Promise<string>> {
  const { id } = JSON.parse(await post(gateway.url, '/checkout_sessions', CART, 201)) as { readonly id: string };
  return () => post(gateway.url, `/checkout_sessions/${id}/complete`, PAYMENT, 200);
}

function post(base: string, path: string, body: JsonObject, expected: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${base}/acp${path}`, { method: 'POST', agent, headers: rightHeaders('POST') });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () =>
        response.statusCode === expected ? resolve(text) : reject(new Error(`${response.statusCode} ${text}`)),
      );
    });
    request.end(JSON.stringify(body));
  });
}

/** The steps of the machine for one call. */
function steps(document: Buffer) {
  let claim = checkoutClaim();
  const context = { name: claim.name, fingerprint: claim.fingerprint, status: 200 };
  const ring = createAnswerSeal([KEY]);
  let sealed = ring.seal(document, context);
  return {
    [NAMING]: () => {
      const operation = 'completeCheckoutSession' as const;
      namesOf(SECRET, 'shop', { clientId: 'assistant', operation, sessionId: 'cs_1', key: randomUUID() });
      return fingerprintOf(SECRET, PAYMENT);
    },
    claim: () => {
      claim = checkoutClaim();
      return store.checkouts.claim(claim);
    },
    [SEALING]: () => {
      sealed = ring.seal(document, context);
    },
    finish: () => store.checkouts.finish(holdOf(claim), { status: 200, sealed, keepMs: LONG_MS }),
  } as const;
}

try {
  const calls = {
    'POST, claims in Redis': await openSession(kept),
    'POST, no claims': await openSession(unkept),
  };
  const document = Buffer.from(await calls['POST, claims in Redis']());
  const contestants = { ...calls, ...steps(document) };
  const times = new Map(Object.keys(contestants).map((name) => [name, [] as number[]]));
  for (let round = -WARM_UP; round < rounds; round += 1)
    for (const [name, work] of Object.entries(contestants)) {
      const start = performance.now();
      await work();
      if (round >= 0) times.get(name)?.push((performance.now() - start) * 1_000);
    }
  const row = (name: string, all: readonly number[]): void => {
    const sorted = all.toSorted((a, b) => a - b);
    const [middle, late] = [percentile(sorted, 0.5), percentile(sorted, 0.99)].map((value) => value.toFixed(0));
    process.stdout.write(`${name.padEnd(28)} ${String(middle).padStart(7)} us  p99 ${String(late).padStart(7)} us\n`);
  };
  for (const [name, all] of times) row(name, all);
  const of = (name: keyof typeof contestants): readonly number[] => times.get(name) ?? [];
  const more = of('POST, claims in Redis').map((whole, round) => whole - (of('POST, no claims')[round] ?? 0));
  row('what the claims add', more);
  // Both gateways name and seal: their difference does not include it.
  const own = (round: number): number => (of(NAMING)[round] ?? 0) + (of(SEALING)[round] ?? 0);
  row(
    'what the machine adds',
    more.map((difference, round) => difference + own(round)),
  );
} finally {
  agent.destroy();
  await store.close();
  await kept.close();
  await unkept.close();
  await server.stop();
}
