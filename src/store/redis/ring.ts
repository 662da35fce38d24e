import type { EventEntry, EventStretch } from '../../events/event.ts';
import { BEGINNING, type RingBounds, standingOf } from '../../events/position.ts';
import { parseEvent } from '../port/event-json.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';

const ID_PREFIX = 'evt_';
/** What the server says of a stream to which nothing was ever added. */
const NO_STREAM = /\bno such key\b/;

/** What follows a position. It is asked for itself too: an entry that is still there proves that nothing after it was dropped. */
export async function stretchAfter(
  redis: RedisClient,
  key: string,
  position: string,
  count: number,
): Promise<EventStretch> {
  const found = (await answered(redis.xrange(key, streamId(position), '+', 'COUNT', count + 1))).map(entryOf);
  if (found[0]?.id === position) return { entries: found.slice(1), standing: 'held' };
  return { entries: found.slice(0, count), standing: standingOf(position, await boundsOf(redis, key)) };
}

/** The id of the server for a position of ours. */
export function streamId(position: string): string {
  return position.slice(ID_PREFIX.length);
}

/** An entry as the server sends it. */
export function entryOf([position, fields]: readonly [id: string, fields: readonly string[]]): EventEntry {
  const id = `${ID_PREFIX}${position}`;
  return { id, event: parseEvent(id, fields[1] ?? '') };
}

/** One look at what the server tells of the stream. */
export async function boundsOf(redis: RedisClient, key: string): Promise<RingBounds> {
  const info = await answered(
    redis.xinfo('STREAM', key).catch((thrown: unknown) => {
      if (thrown instanceof Error && NO_STREAM.test(thrown.message)) return [];
      throw thrown;
    }),
  );
  const told = fieldsOf(info);
  const newest = told.get('last-generated-id');
  const [oldest] = asList(told.get('first-entry'));
  return {
    newest: newest === undefined ? BEGINNING : `${ID_PREFIX}${String(newest)}`,
    oldest: oldest === undefined ? undefined : `${ID_PREFIX}${String(oldest)}`,
    // Entries are dropped by nothing but the cap, so what was added and is not there was trimmed.
    trimmed: Number(told.get('entries-added') ?? 0) > Number(told.get('length') ?? 0),
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
