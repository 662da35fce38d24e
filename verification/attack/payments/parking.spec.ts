import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ACTIVATED, message, paying, send, x402Of } from '../../../spec/adapters/a2a/post.ts';
import { decode } from '../../../spec/e2e/proofs.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack, times } from '../catalogue.ts';

const CITY = { city: 'Berlin' };
/** Unpaid purchases of each form: more than the store holds. */
const UNSIGNED = times(1_100, 20_000);
/** Unpaid purchases in flight. */
const RUNNERS = 24;
const HONEST = 10;
/** How long a purchase of two messages may take beside the flood, milliseconds. */
const WITHIN_MS = 6_000;

/** The addresses of a flood, as the gateway sees them, and the proxies that it trusts. */
const FORMS = {
  'one address': { trustProxy: 0, from: () => undefined },
  'a thousand addresses': { trustProxy: 1, from: (n: number) => `10.${n % 4}.${Math.floor(n / 4) % 250}.7` },
  'behind one ingress that is not trusted': { trustProxy: 0, from: (n: number) => `10.0.${n % 250}.7` },
} as const;

for (const [form, { trustProxy, from }] of Object.entries(FORMS))
  describe(`purchases that are never paid, from ${form}`, () => {
    let redis: TestRedis;
    let testbed: Testbed;
    before(async () => {
      redis = await startRedis();
      testbed = await openTestbed({
        storage: { redis: { url: redis.url } },
        overrides: { server: { trustProxy }, protocols: { a2a: { enabled: true, continuation: true } } },
      });
    });
    after(async () => {
      await testbed?.close();
      await redis?.stop();
    });

    const askUnpaid = (n: number) => {
      const address = from(n);
      const headers = address === undefined ? ACTIVATED : { ...ACTIVATED, 'x-forwarded-for': address };
      return send(testbed.gateway.url, message('market_report', CITY), headers);
    };
    const buy = async (n: number): Promise<string> => {
      const asked = await askUnpaid(n);
      const payload = decode(await testbed.buyer.pay(x402Of(asked)['x402.payment.required']));
      return (await send(testbed.gateway.url, paying(asked.id, payload))).status.state;
    };

    attack(
      'D5',
      `thousands that wait for a payment: all ${HONEST} honest buyers still buy, and the store holds nothing for the others`,
      async (context) => {
        const bought = [];
        let slowest = 0;
        let sent = 0;
        /** The first purchase is paid when all the others wait. */
        const early = await askUnpaid(0);
        const flood = async (): Promise<void> => {
          while (sent < UNSIGNED) {
            sent += 1;
            assert.equal((await askUnpaid(sent)).status.state, 'TASK_STATE_INPUT_REQUIRED');
          }
        };
        const floods = Array.from({ length: RUNNERS }, flood);
        for (let n = 0; n < HONEST - 1; n += 1) {
          // Sequential, spread over the flood.
          while (sent < (UNSIGNED * n) / HONEST) await delay(5);
          const begun = performance.now();
          bought.push(await buy(n));
          slowest = Math.max(slowest, performance.now() - begun);
        }
        await Promise.all(floods);
        const late = decode(await testbed.buyer.pay(x402Of(early)['x402.payment.required']));
        bought.push((await send(testbed.gateway.url, paying(early.id, late))).status.state);
        context.diagnostic(`${UNSIGNED} unpaid, slowest purchase ${Math.round(slowest)} ms: ${bought.join(' ')}`);
        assert.deepEqual(new Set(bought), new Set(['TASK_STATE_COMPLETED']));
        assert.equal(bought.length, HONEST);
        assert.ok(slowest < WITHIN_MS);
        // The end of a delivery is written shortly after its last byte.
        while ((await testbed.gateway.store.census()).open > 0) await delay(10);
        const names = await redisKeyNames(redis);
        assert.equal(names.filter((name) => name.includes(':task:')).length, HONEST, 'a claim for each payment');
        assert.ok(names.length < 10 * HONEST, `${names.length} keys`);
      },
      { timeout: 180_000 },
    );
  });

async function redisKeyNames({ url }: TestRedis): Promise<readonly string[]> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  try {
    return await redis.keys('*');
  } finally {
    redis.disconnect();
  }
}
