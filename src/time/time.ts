import { setTimeout as delay } from 'node:timers/promises';

/** Whole milliseconds since the call came in. */
export function elapsedMs(call: { readonly startedAt: number }): number {
  return Math.round(performance.now() - call.startedAt);
}

/**
 * The answer if it is there within `ms` milliseconds, else what `late` gives or throws.
 *
 * A process that stood still (a burst of calls, a collection of garbage, no share of the processor)
 * finds its timers due before it has read what arrived, and what answers it may have stood still
 * with it. To call that late would refuse calls that nothing is wrong with: so the time in which
 * nothing ran is given again, up to `ms`, and the sockets are read before the answer is given up.
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
      // A timer may be due up to a millisecond early by this clock: then nothing stood still, and a
      // negative delay is a warning of Node's.
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

/**
 * Waiting, in milliseconds, behind a door of its own: a simulation owns the time of everything that
 * works on payments and checkouts.
 */
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
