import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before } from 'node:test';
import { Redis } from 'ioredis';
import type { PaymentRecord, PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { terms } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { granted, LEASE_MS } from './opened.ts';

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
}

/** Filled before the first test of the file. */
export function redisBed(): RedisBed {
  let bed: Omit<RedisBed, 'reserved'> | undefined;
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
    async reserved(wanted = terms()) {
      return granted(await ready().store.ledger.reserve({ terms: wanted, owner: randomUUID(), leaseMs: LEASE_MS }));
    },
  };
}
