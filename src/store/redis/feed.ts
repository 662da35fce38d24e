import type { EventBatch, EventDraft, EventFeed } from '../../events/event.ts';
import { eventJson, eventPage } from '../port/event-json.ts';
import type { StoreLimits } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { boundsOf, entryOf, streamId, stretchAfter } from './ring.ts';
import { APPEND, run } from './script.ts';
import { redisTail } from './tail.ts';

/** How long the number of a queue's last batch is remembered, milliseconds: far longer than a queue keeps repeating one. */
const BATCH_MEMORY_MS = 3_600_000;

/** The connections of the feed. */
interface FeedConnections {
  readonly redis: RedisClient;
  /** Opens one for commands that wait on the server: those behind them would wait too. */
  readonly openTail: () => Promise<RedisClient>;
}

/** The ring of events as a stream: its ids are the positions, given by one counter for all pods. */
export function redisFeed({ redis, openTail }: FeedConnections, keys: RedisKeys, limits: StoreLimits): EventFeed {
  const older = async (than: string | undefined, count: number) => {
    const from = than === undefined ? '+' : `(${streamId(than)}`;
    const entries = await answered(redis.xrevrange(keys.events, from, '-', 'COUNT', count));
    return entries.map(entryOf).map(({ id, event }) => ({ id, item: event }));
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
    after: (position, count) => stretchAfter(redis, keys.events, position, count),
    newest: async () => (await boundsOf(redis, keys.events)).newest,
    tail: () => redisTail(openTail, keys.events),
  };
}
