/** Opens the store of one merchant in Redis. */

import { TAIL_WAIT_MS } from '../../events/event.ts';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import { trimCount } from '../port/receipts.ts';
import type { RedisSettings, StoreLimits } from '../port/settings.ts';
import type { Store } from '../port/store.ts';
import { redisCensus } from './census.ts';
import { redisCheckouts } from './checkouts.ts';
import { type RedisClient, renewLogin } from './client.ts';
import { connect, disconnect, type StoreLog } from './connection.ts';
import { answered } from './failure.ts';
import { redisFeed } from './feed.ts';
import { type EpochWatch, redisHealth, watchEpoch, writable } from './health.ts';
import { type RedisKeys, redisKeys } from './keys.ts';
import { redisLedger } from './ledger.ts';
import { redisMandates } from './mandates.ts';
import { redisReceipts } from './receipts.ts';
import { REPLICAS_TO_WAIT } from './replication.ts';
import { reportWeaknesses } from './setup.ts';
import { redisSharedWork } from './shared-work.ts';

/**
 * Redis >= 7.0, or Valkey. Resolves within about a second also when the server is down: it connects
 * in the background, and `check` reports that. `epoch`: what an empty register of mandates begins
 * with, by default now.
 */
export async function openRedisStore(
  options: RedisSettings & {
    readonly merchantId: string;
    readonly limits: StoreLimits;
    readonly log?: StoreLog;
    readonly epoch?: RegisterEpoch;
  },
): Promise<Store> {
  const { merchantId, limits, log, replicas = 0 } = options;
  const keys = redisKeys(merchantId);
  const [redis, replicated] = await Promise.all([
    connect(options, { name: 'cmd' }, log),
    // Without a log: the other connection logs already.
    replicas >= REPLICAS_TO_WAIT ? connect(options, { name: 'wait' }, undefined) : undefined,
  ]);
  const epoch = watchEpoch(options.epoch, log);
  await keepEpoch(redis, keys, epoch);
  let settings: RedisSettings = options;
  const clients = new Set([redis, ...(replicated === undefined ? [] : [replicated])]);
  const openTail = async () => {
    const tail = await connect(settings, { name: 'tail', waitsMs: TAIL_WAIT_MS }, undefined);
    clients.add(tail);
    tail.once('end', () => clients.delete(tail));
    return tail;
  };
  if (log !== undefined) reportWeaknesses(redis, keys, replicas, log);
  const trimmed = trimCount();
  const receipts = redisReceipts(redis, keys, limits, trimmed);
  const feed = redisFeed({ redis, openTail }, keys, limits);
  const ledger = redisLedger({ redis, replicated }, keys, limits, trimmed);
  /** A page has all that this process has answered, also what waits to be written. */
  const withAll = <Query, Page>(page: (query: Query) => Page) => {
    return (query: Query): Page => {
      ledger.sendWaiting();
      return page(query);
    };
  };
  return {
    name: 'redis',
    ledger,
    feed: { ...feed, page: withAll(feed.page) },
    receipts: { ...receipts, page: withAll(receipts.page) },
    mandates: redisMandates({ redis, replicated }, keys),
    checkouts: redisCheckouts({ redis, replicated }, keys),
    secrets: redisSecrets(redis, keys),
    work: redisSharedWork(redis, keys),
    census: redisCensus(redis, keys),
    check: redisHealth(redis, keys, replicas, epoch),
    tidy: () => receipts.tidy(),
    renew({ engine }) {
      if (engine.kind !== 'redis') return;
      settings = engine;
      for (const client of clients) renewLogin(client, engine);
    },
    close: async () => {
      await Promise.all([disconnect(redis), replicated && disconnect(replicated)]);
    },
  };
}

/**
 * Looks for the epoch of the register now and at every later connection, before other commands use
 * the connection: a register begins before the first checkout is issued, and one that a restart
 * emptied is recognised before it is written to.
 */
async function keepEpoch(redis: RedisClient, keys: RedisKeys, epoch: EpochWatch): Promise<void> {
  redis.on('ready', () => void writable(redis, keys, epoch));
  if (redis.status === 'ready') await writable(redis, keys, epoch);
}

/** Shared values: the first process writes one, all read it. */
export function redisSecrets(redis: RedisClient, keys: RedisKeys): SharedSecrets {
  return {
    async agree(name, candidate) {
      const key = keys.secret(name);
      const written = await answered(redis.set(key, candidate, 'NX'));
      if (written === 'OK') return candidate;
      // If the value is lost between the two commands, the next call writes it again.
      return (await answered(redis.get(key))) ?? candidate;
    },
  };
}
