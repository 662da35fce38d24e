import type { CommerceEvent, EventBatch, EventDraft, EventFeed } from '../../events/event.ts';
import { eventJson, eventPage, parseEvent } from '../event-json.ts';
import type { Entry } from '../page.ts';
import type { StoreLimits } from '../store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { APPEND, run } from './script.ts';

/** How long the number of a queue's last batch is remembered, milliseconds: far longer than a queue keeps repeating one. */
const BATCH_MEMORY_MS = 3_600_000;
const ID_PREFIX = 'evt_';

/** The ring of events as a stream: its ids are the positions, given by one counter for all pods. */
export function redisFeed(redis: RedisClient, keys: RedisKeys, limits: StoreLimits): EventFeed {
  const older = async (than: string | undefined, count: number): Promise<readonly Entry<CommerceEvent>[]> => {
    const from = than === undefined ? '+' : `(${than.slice(ID_PREFIX.length)}`;
    const entries = await answered(redis.xrevrange(keys.events, from, '-', 'COUNT', count));
    return entries.map(([position, fields]) => {
      const id = `${ID_PREFIX}${position}`;
      return { id, item: parseEvent(id, fields[1] ?? '') };
    });
  };
  return {
    async append(events: readonly EventDraft[], batch?: EventBatch) {
      const plan = {
        events: events.map(eventJson),
        eventsMaxLength: limits.eventsMaxLength,
        rememberMs: BATCH_MEMORY_MS,
        ...(batch === undefined ? {} : { sequence: batch.sequence }),
      };
      await run(redis, APPEND, { keys: [keys.events, keys.batch(batch?.queue ?? 'none')], plan });
    },
    page: (query) => eventPage(query, older),
  };
}
