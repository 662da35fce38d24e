import { type EventFeed, type EventTail, TAIL_WAIT_MS } from '../../events/event.ts';
import { StoreError } from '../port/store.ts';
import type { Database } from './database.ts';

/** How often the file is looked at for what another process wrote, milliseconds. Writes of this one are noticed at once. */
const LOOK_EVERY_MS = 1_000;

/** Follows the ring: woken by every commit of this process. */
export function sqliteTail(database: Database, after: EventFeed['after']): EventTail {
  const closing = new AbortController();
  return {
    async read(position, count) {
      const deadline = performance.now() + TAIL_WAIT_MS;
      for (;;) {
        if (closing.signal.aborted) throw new StoreError(new Error('the tail is closed'), false);
        const stretch = await after(position, count);
        const leftMs = deadline - performance.now();
        if (stretch.entries.length > 0 || stretch.standing === 'ahead' || leftMs <= 0) return stretch;
        await database.nextCommit(Math.min(leftMs, LOOK_EVERY_MS), closing.signal);
      }
    },
    close: () => closing.abort(),
  };
}
