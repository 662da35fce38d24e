import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before } from 'node:test';
import { Redis } from 'ioredis';
import type { PaymentRecord, PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { terms } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { granted, LEASE_MS } from './opened.ts';

/** Of the keys of the merchant `shop`. */
export const TAG = '{acg:shop}:';
export const REDIS_LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 100 };

/**
 * A server of this test file, a store of the merchant `shop` on it, and a connection of the test's
 * own beside it.
 */
export interface RedisBed {
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly store: Store;
  reserved(wanted?: PaymentTerms): Promise<PaymentRecord>;
  /** What the merchant's document of this key holds; without one `undefined`. */
  held(key: string): Promise<unknown>;
  /** Damages a document. */
  damage(key: string): Promise<void>;
}

/** Filled before the first test of the file. */
export function redisBed(): RedisBed {
  let bed: Pick<RedisBed, 'server' | 'redis' | 'store'> | undefined;
  before(async () => {
    const server = await startRedis();
    const store = await openRedisStore({ url: server.url, merchantId: 'shop', limits: REDIS_LIMITS });
    const redis = new Redis({ path: server.socketPath });
    // Tests kill the server under it; it reconnects by itself.
    redis.on('error', () => undefined);
    bed = { server, redis, store };
  });
  after(async () => {
    bed?.redis.disconnect();
    await bed?.store.close();
    await bed?.server.stop();
  });
  const ready = () => bed ?? assert.fail('not started');
  return {
    get server() {
      return ready().server;
    },
    get redis() {
      return ready().redis;
    },
    get store() {
      return ready().store;
    },
    async held(key) {
      const stored = await ready().redis.get(TAG + key);
      return stored === null ? undefined : JSON.parse(stored.slice(VERSION_LENGTH));
    },
    async damage(key) {
      await ready().redis.set(TAG + key, `${'damaged'.padEnd(VERSION_LENGTH)}{}`);
    },
    async reserved(wanted = terms()) {
      return granted(await ready().store.ledger.reserve({ terms: wanted, owner: randomUUID(), leaseMs: LEASE_MS }));
    },
  };
}

/** All data of the server but versions, times that are left, and what a check writes. */
export async function everything({ redis }: Pick<RedisBed, 'redis'>): Promise<unknown> {
  const read = async (key: string): Promise<unknown> => {
    const type = await redis.type(key);
    if (type === 'zset') return redis.zrange(key, '0', '-1', 'WITHSCORES');
    return type === 'stream' ? redis.xrange(key, '-', '+') : (await redis.get(key))?.slice(VERSION_LENGTH);
  };
  const keys = (await redis.keys('*')).filter((key) => !key.endsWith(':ready')).toSorted();
  return Promise.all(keys.map(async (key) => [key, await read(key)]));
}
