import { type EventTail, TAIL_WAIT_MS } from '../../events/event.ts';
import { StoreError } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import { entryOf, streamId, stretchAfter } from './ring.ts';

/**
 * Follows the stream on a connection of its own, opened with the first read. What is there already is fetched first, together with the
 * position itself, so that a ring which dropped or forgot it is noticed also after the server was away; only then the server is asked to wait.
 */
export function redisTail(open: () => Promise<RedisClient>, key: string): EventTail {
  let opening: Promise<RedisClient> | undefined;
  let closed = false;
  return {
    async read(position, count) {
      if (closed) throw new StoreError(new Error('the tail is closed'), false);
      opening ??= open();
      const redis = await opening;
      const stretch = await stretchAfter(redis, key, position, count);
      if (stretch.entries.length > 0 || stretch.standing === 'ahead') return stretch;
      // Never from `$`: what is added between two reads would be missed.
      const waited = redis.xread('COUNT', count, 'BLOCK', TAIL_WAIT_MS, 'STREAMS', key, streamId(position));
      const [stream] = (await answered(waited, TAIL_WAIT_MS)) ?? [];
      return { entries: (stream?.[1] ?? []).map(entryOf), standing: stretch.standing };
    },
    close() {
      closed = true;
      // Not QUIT, which would stand in line behind the read that waits.
      void opening?.then((redis) => redis.disconnect());
    },
  };
}
