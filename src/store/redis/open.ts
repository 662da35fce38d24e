/** Opens the store of one merchant in Redis: its feed of events and its budget of unpaid work. */

import {
  type EventEntry,
  type EventFeed,
  type EventStretch,
  type EventTail,
  TAIL_WAIT_MS,
} from '../../events/event.ts';
import { BEGINNING, eventPage, parseEvent, type RingBounds, standingOf } from '../../events/page.ts';
import type { RegisterEpoch } from '../../mandates/register.ts';
import type { SharedWork } from '../../payments/settlement/places.ts';
import { inTime } from '../../time/time.ts';
import { type Store, storeOver } from '../documents/store.ts';
import type { RedisSettings, StoreLimits } from '../port/settings.ts';
import { StoreError, type StoreHealth } from '../port/store-error.ts';
import {
  answered,
  connect,
  disconnect,
  type RedisClient,
  renewLogin,
  runScript,
  type StoreLog,
  WORK,
} from './client.ts';
import { REPLICAS_TO_WAIT, redisCommits } from './commits.ts';
import { reportWeaknesses, weaknesses } from './setup.ts';

/** Deadline of one write and read back, milliseconds. */
const CHECK_TIMEOUT_MS = 300;
/** Between two looks at how the server is set up, milliseconds. */
const SETUP_EVERY_MS = 60_000;

/**
 * Redis >= 7.0, or Valkey. Resolves within about a second also when the server is down: it connects
 * in the background, and `check` reports that. `epoch`: the start of an empty register of mandates,
 * by default now.
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
  // Each connect runs a check, which begins a register before the first checkout is issued, and
  // notices one that a restart emptied before it is written to.
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
      // `place` counts holders from 1; 0: each has room.
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
 * The beginning of all keys of a merchant. It has one hash tag, so one Cluster slot: a commit
 * changes state, receipt and events together.
 * @throws Error for a merchant id that breaks the hash tag
 */
export function keyPrefix(merchantId: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(merchantId)) throw new Error('a merchant id cannot be part of a Redis key');
  return `{acg:${merchantId}}:`;
}

const ID_PREFIX = 'evt_';
/** The server's error for a stream to which nothing was ever added. */
const NO_STREAM = /\bno such key\b/;

/** The connections of the feed. */
interface FeedConnections {
  readonly redis: RedisClient;
  /** Opens one for reads that wait on the server: commands behind them would wait too. */
  readonly openTail: () => Promise<RedisClient>;
}

/** `key`: of the stream. `flush` sends the commits that wait, so that a page has their events. */
export function redisFeed(
  { redis, openTail }: FeedConnections,
  key: string,
  flush: () => void,
): Omit<EventFeed, 'append'> {
  const older = async (than: string | undefined, count: number) => {
    flush();
    const from = than === undefined ? '+' : `(${streamId(than)}`;
    const entries = await answered(redis.xrevrange(key, from, '-', 'COUNT', count));
    return entries.map(entryOf).map(({ id, event }) => ({ id, item: event }));
  };
  return {
    page: (query) => eventPage(query, older),
    after: (position, count) => stretchAfter(redis, key, position, count),
    newest: async () => (await boundsOf(redis, key)).newest,
    tail: () => redisTail(openTail, key),
  };
}

/**
 * Follows the stream on a connection of its own, opened with the first read. A read first fetches
 * the entries from the position on, which shows whether the ring dropped or lost the position while
 * the server was away. Only if no entry follows does it wait on the server.
 */
function redisTail(open: () => Promise<RedisClient>, key: string): EventTail {
  let opening: Promise<RedisClient> | undefined;
  let closed = false;
  return {
    async read(position, count) {
      if (closed) throw new StoreError(new Error('the tail is closed'), false);
      opening ??= open();
      const redis = await opening;
      const stretch = await stretchAfter(redis, key, position, count);
      if (stretch.entries.length > 0 || stretch.standing === 'ahead') return stretch;
      // Never from `$`: entries added between two reads would be missed.
      const waited = redis.xread('COUNT', count, 'BLOCK', TAIL_WAIT_MS, 'STREAMS', key, streamId(position));
      const [stream] = (await answered(waited, TAIL_WAIT_MS)) ?? [];
      return { entries: (stream?.[1] ?? []).map(entryOf), standing: stretch.standing };
    },
    close() {
      closed = true;
      // Not QUIT, which would queue behind the read that waits.
      void opening?.then((redis) => redis.disconnect());
    },
  };
}

/** The entries behind a position. If the position is still an entry, none behind it was dropped. */
async function stretchAfter(redis: RedisClient, key: string, position: string, count: number): Promise<EventStretch> {
  const found = (await answered(redis.xrange(key, streamId(position), '+', 'COUNT', count + 1))).map(entryOf);
  if (found[0]?.id === position) return { entries: found.slice(1), standing: 'held' };
  return { entries: found.slice(0, count), standing: standingOf(position, await boundsOf(redis, key)) };
}

async function boundsOf(redis: RedisClient, key: string): Promise<RingBounds> {
  const info = await answered(
    redis.xinfo('STREAM', key).catch((thrown: unknown) => {
      if (thrown instanceof Error && NO_STREAM.test(thrown.message)) return [];
      throw thrown;
    }),
  );
  const fields = fieldsOf(info);
  const newest = fields.get('last-generated-id');
  const [oldest] = asList(fields.get('first-entry'));
  return {
    newest: newest === undefined ? BEGINNING : `${ID_PREFIX}${String(newest)}`,
    oldest: oldest === undefined ? undefined : `${ID_PREFIX}${String(oldest)}`,
    // Only the cap drops entries, so an entry that was added and is not there was trimmed.
    trimmed: Number(fields.get('entries-added') ?? 0) > Number(fields.get('length') ?? 0),
  };
}

/** The reply is a list of names and values, one after the other. */
function fieldsOf(info: unknown): ReadonlyMap<unknown, unknown> {
  const flat = asList(info);
  return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]] as const] : [])));
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The server's id of one of our positions. */
function streamId(position: string): string {
  return position.slice(ID_PREFIX.length);
}

/** An entry as the server sends it. */
function entryOf([position, fields]: readonly [id: string, fields: readonly string[]]): EventEntry {
  const id = `${ID_PREFIX}${position}`;
  return { id, event: parseEvent(id, fields[1] ?? '') };
}
