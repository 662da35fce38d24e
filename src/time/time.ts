/** Waiting and the clock: what payments and checkouts use in place of timers of their own. */

import { setTimeout as delay } from 'node:timers/promises';
import { startDeadline } from './deadlines.ts';

/** Whole milliseconds since the call came in. */
export function elapsedMs(call: { readonly startedAt: number }): number {
  return Math.round(performance.now() - call.startedAt);
}

/**
 * The answer if it comes within `ms` milliseconds, else what `late` returns or throws. The time of
 * a standstill of this process is given again (deadlines.ts).
 */
export function inTime<T, L>(answer: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const deadline = startDeadline(ms, () => {
      try {
        resolve(late());
      } catch (thrown) {
        reject(thrown);
      }
    });
    answer.then(
      (value) => {
        deadline.end();
        resolve(value);
      },
      (thrown: unknown) => {
        deadline.end();
        reject(thrown);
      },
    );
  });
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
