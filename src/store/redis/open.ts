import type { Store, StoreLimits } from '../store.ts';
import { connect, disconnect, type StoreLog } from './connection.ts';
import { redisFeed } from './feed.ts';
import { redisHealth } from './health.ts';
import { redisKeys } from './keys.ts';
import { redisLedger } from './ledger.ts';
import { redisReceipts } from './receipts.ts';

/**
 * Opens the store of one merchant in Redis (>= 7.0) or Valkey. `url` is redis://, rediss:// or unix:///path/of.sock.
 * Resolves within about a second also when the server is down: it connects in the background, and `check` tells.
 */
export async function openRedisStore(options: {
  readonly url: string;
  readonly merchantId: string;
  readonly limits: StoreLimits;
  readonly log?: StoreLog;
}): Promise<Store> {
  const { url, merchantId, limits, log } = options;
  const keys = redisKeys(merchantId);
  const redis = await connect(url, log);
  return {
    name: 'redis',
    ledger: redisLedger(redis, keys, limits),
    feed: redisFeed(redis, keys, limits),
    receipts: redisReceipts(redis, keys, limits),
    check: redisHealth(redis, keys),
    close: () => disconnect(redis),
  };
}
