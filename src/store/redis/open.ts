import { TAIL_WAIT_MS } from '../../events/event.ts';
import type { RedisSettings } from '../settings.ts';
import type { Store, StoreLimits } from '../store.ts';
import { redisCensus } from './census.ts';
import { connect, disconnect, type StoreLog } from './connection.ts';
import { redisFeed } from './feed.ts';
import { redisHealth } from './health.ts';
import { redisKeys } from './keys.ts';
import { redisLedger } from './ledger.ts';
import { redisMandates } from './mandates.ts';
import { redisParked } from './parked.ts';
import { redisReceipts } from './receipts.ts';
import { REPLICAS_TO_WAIT } from './replication.ts';
import { reportWeaknesses } from './setup.ts';

/**
 * Opens the store of one merchant in Redis (>= 7.0) or Valkey. Resolves within about a second also when the server is down: it
 * connects in the background, and `check` tells.
 */
export async function openRedisStore(
  options: RedisSettings & { readonly merchantId: string; readonly limits: StoreLimits; readonly log?: StoreLog },
): Promise<Store> {
  const { merchantId, limits, log, replicas = 0 } = options;
  const keys = redisKeys(merchantId);
  const [redis, replicated] = await Promise.all([
    connect(options, { name: 'cmd' }, log),
    // The other one has told the log already.
    replicas >= REPLICAS_TO_WAIT ? connect(options, { name: 'wait' }, undefined) : undefined,
  ]);
  // Opened when somebody follows the events.
  const openTail = () => connect(options, { name: 'tail', waitsMs: TAIL_WAIT_MS }, undefined);
  if (log !== undefined) reportWeaknesses(redis, keys, replicas, log);
  return {
    name: 'redis',
    ledger: redisLedger({ redis, replicated }, keys, limits),
    feed: redisFeed({ redis, openTail }, keys, limits),
    receipts: redisReceipts(redis, keys, limits),
    parked: redisParked(redis, keys),
    mandates: redisMandates({ redis, replicated }, keys),
    census: redisCensus(redis, keys),
    check: redisHealth(redis, keys, replicas),
    close: async () => {
      await Promise.all([disconnect(redis), replicated && disconnect(replicated)]);
    },
  };
}
