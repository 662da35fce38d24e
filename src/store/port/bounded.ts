/** Keeps a list within its bound: the entries that come first in it are dropped. */

import type { Commits } from './commit.ts';

/** Entries that one step drops. */
export const DROPPED_AT_ONCE = 100;

interface BoundedList {
  /** Counts an entry that was added; after a hundred of them the list is looked at. */
  added(): void;
  /** Drops some entries over the bound; resolves with how many. @throws StoreError */
  trim(): Promise<number>;
}

/** `drop`: drops these members with all that belongs to them, and resolves with how many. */
export function boundedList(
  store: Commits,
  list: string,
  most: number,
  drop: (members: readonly string[]) => Promise<number>,
): BoundedList {
  let added = 0;
  const trim = async (): Promise<number> => {
    const over = (await store.size(list)) - most;
    return over <= 0 ? 0 : drop(await store.members(list, { by: 'score', limit: Math.min(over, DROPPED_AT_ONCE) }));
  };
  return {
    added() {
      added += 1;
      if (added < DROPPED_AT_ONCE) return;
      added = 0;
      // Housekeeping does what fails here.
      trim().catch(() => undefined);
    },
    trim,
  };
}
