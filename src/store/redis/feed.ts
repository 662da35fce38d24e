/** The ring of events as a Redis stream: its ids are the positions, the same for all pods. */

import {
  type EventEntry,
  type EventFeed,
  type EventStretch,
  type EventTail,
  TAIL_WAIT_MS,
} from '../../events/event.ts';
import { BEGINNING, eventPage, parseEvent, type RingBounds, standingOf } from '../../events/page.ts';
import { StoreError } from '../port/store-error.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';

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
 * what is there, with the position itself, so that it notices a ring that dropped or lost the
 * position while the server was away. Only then it waits on the server.
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

/** What follows a position. If the position is still an entry, nothing after it was dropped. */
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
