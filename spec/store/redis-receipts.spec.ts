import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { PAYMENT, receipt, sha256 } from '../payments/ledger/samples.ts';
import { idsIn } from './opened.ts';
import { REDIS_LIMITS, redisBed } from './redis-bed.ts';

const DAY_MS = 86_400_000;
const bed = redisBed();

async function withStore(then: (store: Store, merchantId: string) => Promise<void>, more: object = {}): Promise<void> {
  const merchantId = randomUUID();
  const store = await openRedisStore({ url: bed.server.url, merchantId, limits: { ...REDIS_LIMITS, ...more } });
  try {
    await then(store, merchantId);
  } finally {
    await store.close();
  }
}

/** Commands that the server ran meanwhile, those inside scripts and those of this test apart. */
async function sentDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  const monitor = await bed.redis.monitor();
  const seen: string[] = [];
  monitor.on('monitor', (_time: string, [name = '']: readonly string[], source: string) => {
    if (source !== 'lua') seen.push(name.toLowerCase());
  });
  await work();
  // The monitor gets commands in order: once it has this one, it has all earlier ones.
  await bed.redis.echo('end');
  while (!seen.includes('echo')) await new Promise((resolve) => setTimeout(resolve, 1));
  monitor.disconnect();
  return seen.filter((name) => name !== 'echo');
}

describe('the book of receipts in Redis', () => {
  it('reads a page of each list in two commands, or three where it is of two lists', () =>
    withStore(async ({ receipts }) => {
      const ids = Array.from({ length: 300 }, (_, i) => receiptId(1_000_000 - i));
      await receipts.write(ids.map((id, i) => receipt(id, `r${i}`, { delivered: i % 100 !== 0 })));
      for (const [query, ...commands] of [
        [{}, 'zrange', 'zrange', 'evalsha'],
        [{ delivered: false }, 'zrange', 'evalsha'],
        [{ delivered: true }, 'zrange', 'evalsha'],
        [{ requestId: 'r7' }, 'zrange', 'evalsha'],
        [{ callId: 'none' }, 'zrange'],
      ] as const)
        assert.deepEqual(await sentDuring(() => receipts.page({ limit: 50, ...query })), commands);
    }));

  it('drops delivered receipts past their age, on the clock of the server, and nothing that is owed', () =>
    withStore(
      async ({ receipts, tidy }) => {
        const [seconds = '0'] = await bed.redis.time();
        const now = Number(seconds) * 1_000;
        const [old, owed, recent] = [
          receiptId(now - 3 * DAY_MS),
          receiptId(now - 2 * DAY_MS - 1),
          receiptId(now - DAY_MS),
        ];
        await receipts.write([old, recent].map((id) => receipt(id, 'aged', { delivered: true })));
        await receipts.write([receipt(owed, 'aged')]);
        assert.equal(await tidy(), false);
        const page = await receipts.page({ limit: 5, requestId: 'aged' });
        assert.deepEqual(idsIn(page), [recent, owed]);
        assert.deepEqual(receipts.trimmed(), { length: 0, age: 1 });
      },
      { receiptsMaxAgeMs: 2 * DAY_MS },
    ));

  it('leaves nothing of a dropped receipt behind', () =>
    withStore(
      async (store, merchantId) => {
        const { receipts } = store;
        const ids = Array.from({ length: 30 }, (_, i) => receiptId(1_000 + i));
        const metadata = { callId: 'call_1', resumedFrom: 'before' };
        for (const id of ids) {
          const payment = { ...PAYMENT, replayKey: sha256(id) };
          await receipts.write([receipt(id, 'name', { delivered: true, metadata, payment })]);
        }
        await store.tidy();
        const keys = await bed.redis.keys(`{acg:${merchantId}}:rcpt:*`);
        const lists = ['done', 'names'].map((list) => `{acg:${merchantId}}:rcpt:${list}`);
        assert.deepEqual(await Promise.all(lists.map((key) => bed.redis.zcard(key))), [10, 30]);
        assert.equal(keys.length, lists.length + 20 + 1, 'ten receipts of payments, and how far the book reaches');
      },
      { receiptsMaxLength: 10 },
    ));
});
