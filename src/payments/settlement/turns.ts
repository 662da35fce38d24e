/** Calls that wait in turn for what others have: a bounded time, and a bounded number of them. */

import { Counts } from '../../counts.ts';
import type { Time } from '../../time/time.ts';

/** Calls that wait, in the order they came. */
export interface Turns {
  /**
   * What `take` gives once it gives something; it is asked at each wake, and when the time is over.
   * Undefined: nothing in time, or as many calls wait already as may. `bounds`: how many may wait
   * of each name that the call has.
   */
  wait<T>(bounds: Iterable<readonly [name: string, most: number]>, take: () => T | undefined): Promise<T | undefined>;
  /** Something came free. A call that cannot take it does not keep it from the next one. */
  wake(): void;
}

/** `waitMs`: how long a call waits, milliseconds. */
export function createTurns(waitMs: number, time: Time): Turns {
  const waiting = new Set<() => void>();
  const counts = new Counts();
  return {
    wait<T>(bounds: Iterable<readonly [string, number]>, take: () => T | undefined) {
      const all = [...bounds];
      if (all.some(([name, most]) => counts.of(name) >= most)) return Promise.resolve(undefined);
      const names = all.map(([name]) => name);
      const { promise, resolve } = Promise.withResolvers<T | undefined>();
      const end = (taken: T | undefined): void => {
        waiting.delete(look);
        counts.add(names, -1);
        resolve(taken);
      };
      const look = (): void => {
        const taken = take();
        if (taken !== undefined) end(taken);
      };
      waiting.add(look);
      counts.add(names, 1);
      void time.sleep(waitMs).then(() => {
        if (waiting.has(look)) end(take());
      });
      return promise;
    },
    wake() {
      for (const look of [...waiting]) look();
    },
  };
}
