/** Keeps a list within its bound: the entries that come first in it are dropped. */

import type { Commits, Stretch } from './commit.ts';

/** Entries that one step drops. */
export const DROPPED_AT_ONCE = 100;

interface BoundedList {
  /**
   * Counts entries that were added. After a hundred, or a hundredth of the bound, the list is
   * looked at; housekeeping does what fails here.
   */
  added(count: number): Promise<void>;
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
  let added = 0;
  const trim = async (): Promise<number> => {
    const over = (await store.size(list)) - most;
    return over <= 0 ? 0 : drop(await store.members(list, { by, limit: Math.min(over, DROPPED_AT_ONCE) }));
  };
  return {
    async added(count) {
      added += count;
      if (added < Math.min(DROPPED_AT_ONCE, most / DROPPED_AT_ONCE)) return;
      added = 0;
      await trim().catch(() => undefined);
    },
    trim,
  };
}
