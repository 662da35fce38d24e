/** Keeps a list within its bound: the entries that come first in it are dropped. */

import type { Commits, Stretch } from './commit.ts';

/** Entries that one step drops. */
export const DROPPED_AT_ONCE = 100;

/**
 * A list is counted again after so many entries were added: a share of its bound, or of the room
 * that it had at the last count. SQLite counts one by one.
 */
const OF_BOUND = 0.01;
const OF_ROOM = 0.1;

interface BoundedList {
  /** Counts entries that were added, and drops what is over. Housekeeping does what fails here. */
  added(entries: number): Promise<void>;
  /** Drops some entries over the bound; resolves with how many. @throws StoreError */
  trim(): Promise<number>;
}

/**
 * `by`: the order in which entries come first. `drop`: drops these members with all that belongs to
 * them, and resolves with how many.
 */
export function boundedList(
  store: Commits,
  list: string,
  most: number,
  by: Stretch['by'],
  drop: (members: readonly string[]) => Promise<number>,
): BoundedList {
  /** Entries that were added since the last step, and since the last count. */
  let since = { step: 0, count: 0 };
  /** By the last count, less what was dropped since; below 0 there is room. */
  let over = 0;
  const count = async (): Promise<void> => {
    since = { step: 0, count: 0 };
    over = (await store.size(list)) - most;
  };
  const step = async (): Promise<number> => {
    if (over <= 0) return 0;
    const limit = Math.min(over, DROPPED_AT_ONCE);
    over -= limit;
    return drop(await store.members(list, { by, limit }));
  };
  return {
    async added(entries) {
      since = { step: since.step + entries, count: since.count + entries };
      if (since.step < Math.min(DROPPED_AT_ONCE, most * OF_BOUND)) return;
      try {
        if (over <= 0 && since.count >= Math.max(most * OF_BOUND, -over * OF_ROOM)) await count();
        since.step = 0;
        await step();
      } catch {}
    },
    async trim() {
      await count();
      return step();
    },
  };
}
