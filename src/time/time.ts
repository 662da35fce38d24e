import { setTimeout as delay } from 'node:timers/promises';

/** Waiting, in milliseconds, behind a door of its own: a simulation owns the time of everything that works on payments and checkouts. */
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
