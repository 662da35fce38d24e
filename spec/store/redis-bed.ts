import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { Redis } from 'ioredis';
import type { PaymentRecord, PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { terms } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { granted, LEASE_MS } from './opened.ts';

/** Of the keys of the merchant `shop`. */
export const TAG = '{acg:shop}:';
export const REDIS_LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 100 };

/**
 * A server of this test file, a store of the merchant `shop` on it, and a connection of the test's
 * own beside it.
 */
interface RedisBed {
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

/** How a commit that was made is answered. */
const DONE = '\r\ndone\r\n';

/** Another store of the bed's merchant, over a line that can lose replies. */
interface LossyStore {
  readonly store: Store;
  /** Sends a command, loses the reply to its commit, and waits until the store is connected. */
  lost(send: () => Promise<unknown>): Promise<void>;
}

/** Open while the tests of the suite run in which it is called. */
export function lossyStore(bed: Pick<RedisBed, 'server'>): LossyStore {
  let opened: { readonly line: TcpProxy; readonly store: Store } | undefined;
  let lose: (() => void) | undefined;
  const ready = () => opened ?? assert.fail('not started');
  before(async () => {
    const line = await startTcpProxy({ path: bed.server.socketPath }, ({ bytes, direction, client, pass }) => {
      if (lose === undefined || direction === 'request' || !bytes.includes(DONE)) return pass();
      client.destroy();
      lose();
      lose = undefined;
    });
    const url = `redis://127.0.0.1:${line.port}`;
    opened = { line, store: await openRedisStore({ url, merchantId: 'shop', limits: REDIS_LIMITS }) };
  });
  after(async () => {
    await opened?.store.close();
    await opened?.line.stop();
  });
  return {
    get store() {
      return ready().store;
    },
    async lost(send) {
      const { store } = ready();
      // The check that a new connection begins with is over before this one is.
      await store.check();
      const gone = new Promise<void>((resolve) => {
        lose = resolve;
      });
      await assert.rejects(send(), StoreError);
      await gone;
      await until(async () => (await store.check()).status === 'ok', 'the store does not reconnect');
    },
  };
}

const RIGHTS_DOCUMENT = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');

/** The rights of the document: only keys of the merchant, only commands that a gateway sends. */
export function leastRights(merchantId: string): readonly string[] {
  return rightsIn('acl').map((right) => right.replace('MERCHANT', merchantId));
}

/** In a cluster the client asks for the nodes of the slots. */
export const CLUSTER_RIGHTS: readonly string[] = rightsIn('acl-cluster');

/** Rights that a gateway uses if it has them. */
export const OPTIONAL_RIGHTS: readonly string[] = rightsIn('acl-optional');

/** The rights of one block of the document. */
function rightsIn(block: string): readonly string[] {
  const [, text] =
    new RegExp(`\`\`\`${block} run[^\n]*\n([^\`]*)\`\`\``).exec(RIGHTS_DOCUMENT) ??
    assert.fail(`docs/redis.md has no block ${block}`);
  return (text ?? '').split(/\s+/).filter((right) => right !== '');
}
