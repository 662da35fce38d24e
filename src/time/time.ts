/** Waiting and the clock: what payments and checkouts use in place of timers of their own. */

import { setTimeout as delay } from 'node:timers/promises';

/** Whole milliseconds since the call came in. */
export function elapsedMs(call: { readonly startedAt: number }): number {
  return Math.round(performance.now() - call.startedAt);
}

/**
 * The answer if it comes within `ms` milliseconds, else what `late` returns or throws.
 *
 * In a process that stood still (a burst of calls, a garbage collection, no processor time) timers
 * are due before it reads what arrived, and its peer may have stood still with it. To call that
 * late would refuse sound calls: so the time in which nothing ran is given again, up to `ms`, and
 * the sockets are read before the answer is given up.
 */
export async function inTime<T, L>(answer: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  const start = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let read: NodeJS.Immediate | undefined;
  const overdue = new Promise<void>((resolve) => {
    // An event loop polls its sockets between its timers and its immediates.
    const giveUp = () => {
      read = setImmediate(resolve);
    };
    timer = setTimeout(() => {
      // A timer may be up to a millisecond early by this clock: then nothing stood still, and Node
      // warns of a negative delay.
      const stoodStillMs = Math.max(0, performance.now() - start - ms);
      timer = setTimeout(giveUp, Math.min(stoodStillMs, ms));
    }, ms);
  });
  try {
    return await Promise.race([answer, overdue.then(late)]);
  } finally {
    clearTimeout(timer);
    clearImmediate(read);
  }
}

/** Time in milliseconds, as a port: a simulation replaces it for payments and checkouts. */
export interface Time {
  /** Monotonic. */
  now(): number;
  /** Never keeps the process alive. */
  sleep(ms: number): Promise<void>;
}

export const REAL_TIME: Time = {
  now: () => performance.now(),
  sleep: (ms) => delay(ms, undefined, { ref: false }),
};
