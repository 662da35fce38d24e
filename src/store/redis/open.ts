/** Opens the store of one merchant in Redis. */

import { TAIL_WAIT_MS } from '../../events/event.ts';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import { inTime } from '../../time/time.ts';
import type { Store } from '../documents/store.ts';
import { storeOver } from '../documents/store-over.ts';
import type { RedisSettings, StoreLimits } from '../port/settings.ts';
import type { StoreHealth } from '../port/store-error.ts';
import { renewLogin } from './client.ts';
import { REPLICAS_TO_WAIT, redisCommits } from './commits.ts';
import { connect, disconnect, type StoreLog } from './connection.ts';
import { redisFeed } from './feed.ts';
import { keyPrefix } from './keys.ts';
import { reportWeaknesses, weaknesses } from './setup.ts';
import { redisSharedWork } from './shared-work.ts';

/** Deadline of one write and read back, milliseconds. */
const CHECK_TIMEOUT_MS = 300;
/** Between two looks at how the server is set up, milliseconds. */
const SETUP_EVERY_MS = 60_000;

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
  const { merchantId, limits, log, epoch, replicas = 0 } = options;
  const prefix = keyPrefix(merchantId);
  const [redis, replicated] = await Promise.all([
    connect(options, { name: 'cmd' }, log),
    // Without a log: the other connection logs already.
    replicas >= REPLICAS_TO_WAIT ? connect(options, { name: 'wait' }, undefined) : undefined,
  ]);
  let settings: RedisSettings = options;
  const clients = new Set([redis, ...(replicated === undefined ? [] : [replicated])]);
  const openTail = async () => {
    const tail = await connect(settings, { name: 'tail', waitsMs: TAIL_WAIT_MS }, undefined);
    clients.add(tail);
    tail.once('end', () => clients.delete(tail));
    return tail;
  };
  if (log !== undefined) reportWeaknesses(redis, prefix, replicas, log);
  const commits = redisCommits({ redis, replicated }, prefix, limits.eventsMaxLength);
  const store = storeOver(
    {
      name: 'redis',
      commits,
      feed: redisFeed({ redis, openTail }, `${prefix}ev`, commits.flush),
      work: redisSharedWork(redis, prefix),
      close: async () => {
        await Promise.all([disconnect(redis), replicated && disconnect(replicated)]);
      },
    },
    limits,
    { epoch, log, unanswered: 'unreachable' },
  );
  const writable = (): Promise<StoreHealth> =>
    inTime(store.check(), CHECK_TIMEOUT_MS, () => ({ status: 'unreachable', cause: 'no answer in time' }));
  // With every connection: a register begins before the first checkout is issued, and one that a
  // restart emptied is recognised before it is written to.
  redis.on('ready', () => void writable());
  if (redis.status === 'ready') await writable();
  let setup: StoreHealth = { status: 'ok' };
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    ...store,
    async check() {
      const written = await writable();
      if (written.status !== 'ok') return written;
      if (performance.now() - lookedAt >= SETUP_EVERY_MS) {
        const weak = await weaknesses(redis, prefix, replicas);
        setup = weak.length === 0 ? { status: 'ok' } : { status: 'degraded', cause: weak.join('; ') };
        lookedAt = performance.now();
      }
      return setup;
    },
    renew({ engine }) {
      if (engine.kind !== 'redis') return;
      settings = engine;
      for (const client of clients) renewLogin(client, engine);
    },
  };
}
