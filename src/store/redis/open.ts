/** Opens the store of one merchant in Redis, and its budget of unpaid work. */

import { TAIL_WAIT_MS } from '../../events/event.ts';
import type { RegisterEpoch } from '../../mandates/register.ts';
import type { SharedWork } from '../../payments/settlement/places.ts';
import { inTime } from '../../time/time.ts';
import type { Store } from '../documents/store.ts';
import { storeOver } from '../documents/store-over.ts';
import type { RedisSettings, StoreLimits } from '../port/settings.ts';
import type { StoreHealth } from '../port/store-error.ts';
import { type RedisClient, renewLogin } from './client.ts';
import { REPLICAS_TO_WAIT, redisCommits } from './commits.ts';
import { connect, disconnect, type StoreLog } from './connection.ts';
import { answered } from './failure.ts';
import { redisFeed } from './feed.ts';
import { runScript, WORK } from './script.ts';
import { reportWeaknesses, weaknesses } from './setup.ts';

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

function redisSharedWork(redis: RedisClient, prefix: string): SharedWork {
  const unpaidKey = (holder: string): string => `${prefix}work:unpaid:${holder}`;
  const holdersKey = (unpaid: string): string => `${prefix}work:of:${unpaid}`;
  const ask = async (
    holders: readonly string[],
    ...words: readonly (string | number)[]
  ): Promise<readonly number[]> => {
    const keys = holders.flatMap((holder) => [`${prefix}work:run:${holder}`, unpaidKey(holder)]);
    return (await answered(runScript(redis, WORK, keys, words.map(String)))) as readonly number[];
  };
  return {
    async take(name, bounds, forMs) {
      const holders = bounds.map(([holder]) => holder);
      const [place = 0, spentForMs = 0] = await ask(
        holders,
        'take',
        name,
        '',
        forMs,
        ...bounds.map(([, most]) => most),
      );
      // Counted from 1; 0 is none.
      const holder = holders[place - 1];
      return holder === undefined ? undefined : { holder, spentForMs };
    },
    async leave(name, holders, unpaid) {
      // Only a call that may still be paid is looked for by its name.
      if (unpaid?.name === name)
        await answered(redis.set(holdersKey(unpaid.name), JSON.stringify(holders), 'PX', unpaid.forMs));
      await ask(holders, 'leave', name, unpaid?.name ?? '', unpaid?.forMs ?? 0);
    },
    async free(unpaid) {
      const holders = await answered(redis.get(holdersKey(unpaid)));
      if (holders !== null) await ask(JSON.parse(holders) as string[], 'free', '', unpaid, 0);
    },
    listed: (holder, limit) =>
      answered(redis.zrange(unpaidKey(holder), '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit)),
  };
}

/**
 * The beginning of all of them. It has one hash tag, so one Cluster slot: a commit changes state,
 * receipt and events together.
 * @throws Error for a merchant id that breaks the hash tag
 */
export function keyPrefix(merchantId: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(merchantId)) throw new Error('a merchant id cannot be part of a Redis key');
  return `{acg:${merchantId}}:`;
}
