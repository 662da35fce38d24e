import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { askPrice } from '../../../spec/support/purchase.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { startWorld } from '../../../spec/support/world.ts';
import { LEASE_MS } from '../../../src/payments/settlement/attempt.ts';
import { attack, times } from '../catalogue.ts';
import { formOf, openTarget, type Target, targetOf } from '../target.ts';
import { answerTo, HOST, head, JSON_TYPE, type WireAnswer } from '../wire/conversation.ts';

/** A third brings refused proofs, of which a client has at most a hundred judged a second. */
const CHALLENGES = times(1_500, 30_000);
const RING = 100;
/** How much records of refused and unpaid calls may add to a store with bounded rings, bytes. */
const MAX_STORE_GROWTH = 1_500_000;
/**
 * The size of an answer that is kept whole, bytes, and how many of them fit into the free memory at
 * most.
 */
const KEPT = 200_000;
const ROOM = 8 * KEPT;
/** More answers than a memory of that size holds. */
const MOST_SOLD = 60;
/**
 * Time for a call that could not write its end, and for one that took it over and failed the same
 * way, on a busy machine; and how often it is asked for.
 */
const MAX_WAIT_MS = 5 * LEASE_MS;
const LOOK_EVERY_MS = 500;

const invoke = (url: string, id: string, ...lines: readonly string[]): Promise<WireAnswer> =>
  answerTo(
    url,
    `${head(`POST /api/resources/${id}/invoke HTTP/1.1`, HOST, JSON_TYPE, 'Content-Length: 2', ...lines)}{}`,
  );

describe('a gateway that receives too many calls', () => {
  let target: Target;
  before(async () => {
    target = await openTarget({ server: { trustProxy: 0 }, limits: { rate: { perSecond: 1, burst: 5 } } });
  });
  after(() => target?.stop());

  attack('D4', 'one address is one client, with any X-Forwarded-For', async () => {
    const statuses: number[] = [];
    for (let call = 0; call < 20; call += 1) {
      const answer = await invoke(
        target.url,
        'free_echo',
        `X-Forwarded-For: 203.0.113.${call}`,
        `Forwarded: for=198.51.100.${call}`,
        `X-Real-IP: 192.0.2.${call}`,
      );
      assert.ok(formOf(answer));
      statuses.push(answer.status);
    }
    assert.ok(statuses.filter((status) => status === 429).length >= 10, statuses.join());
  });
});

describe('a store that unpaid calls fill', () => {
  let redis: TestRedis;
  let client: Redis;
  let target: Target;
  before(async () => {
    redis = await startRedis();
    client = new Redis({ path: redis.socketPath });
    const storage = { redis: { url: redis.url } };
    target = targetOf(await startWorld({ storage, overrides: { storage: { eventsMaxLength: RING } } }));
  });
  after(async () => {
    client?.disconnect();
    await target?.stop();
    await redis?.stop();
  });

  const bring = (proof: string, input: string): Promise<WireAnswer> => {
    const lines = [HOST, JSON_TYPE, `Content-Length: ${input.length}`, `Payment-Signature: ${proof}`];
    return answerTo(target.url, head('POST /api/resources/bytes/invoke HTTP/1.1', ...lines) + input);
  };
  const usedBytes = async (): Promise<number> =>
    Number(/used_memory_dataset:(\d+)/.exec(await client.info('memory'))?.[1]);

  attack(
    'D5',
    `${CHALLENGES} challenges and refused proofs leave no record, and the rings do not grow`,
    async () => {
      for (let first = 0; first < RING; first += 1) await invoke(target.url, 'echo');
      const [keys, bytes] = [await client.dbsize(), await usedBytes()];
      let left = CHALLENGES;
      const line = async (): Promise<void> => {
        for (; left > 0; left -= 1) {
          const proof =
            left % 3 === 0
              ? [`Payment-Signature: ${Buffer.from(`{"x402Version":2,"n":${left}}`).toString('base64')}`]
              : [];
          assert.equal((await invoke(target.url, 'echo', ...proof)).status, 402);
        }
      };
      await Promise.all(Array.from({ length: 16 }, line));
      assert.ok((await client.dbsize()) <= keys + 1);
      const growth = (await usedBytes()) - bytes;
      assert.ok(growth < MAX_STORE_GROWTH, `${growth} bytes more`);
    },
    { timeout: 600_000 },
  );

  attack(
    'D6',
    'a store full of kept answers evicts nothing, and a refused buyer collects with the same proof, paid once',
    async () => {
      const buyer = await createBuyer(target.chain);
      await client.config(
        'SET',
        'maxmemory',
        String(Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]) + ROOM),
      );
      const input = JSON.stringify({ size: KEPT });
      const waiting: string[] = [];
      let sold = 0;
      while (waiting.length === 0 && sold < MOST_SOLD) {
        const proof = await buyer.pay((await askPrice(target.url, 'bytes', input)).paymentRequired);
        const answer = await bring(proof, input);
        if (answer.status === 200) sold += 1;
        else {
          const { code } = JSON.parse(answer.body.toString()) as { readonly code: string };
          // Refused before money moved, or with an unknown write, or paid and not delivered without
          // a record.
          const refusals = [
            'STORAGE_ERROR',
            'PAYMENT_PROVIDER_UNAVAILABLE',
            'PAYMENT_SETTLEMENT_FAILED',
            'BACKEND_ERROR',
          ];
          assert.ok(refusals.includes(code), code);
          waiting.push(proof);
        }
      }
      assert.ok(sold > 0 && waiting.length > 0);
      assert.equal(/evicted_keys:(\d+)/.exec(await client.info('stats'))?.[1], '0');
      await client.config('SET', 'maxmemory', '0');
      for (const proof of waiting) {
        let answer = await bring(proof, input);
        // The call whose end could not be written holds its slot until its lease ends.
        for (
          const late = Date.now() + MAX_WAIT_MS;
          answer.status === 409 && Date.now() < late;
          await delay(LOOK_EVERY_MS)
        )
          answer = await bring(proof, input);
        assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400));
      }
      const income = await target.chain.balanceOf(target.payTo);
      assert.equal(income, BigInt(sold + waiting.length) * 1_000n, 'each was paid for once');
    },
  );
});
