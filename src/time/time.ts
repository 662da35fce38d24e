/** Waiting, deadlines and the clock: payments and checkouts use it in place of own timers. */

import { setTimeout as delay } from 'node:timers/promises';
import { LinkedList, type Place } from '../linked-list.ts';

/** Whole milliseconds since the call came in. */
export function elapsedMs(call: { readonly startedAt: number }): number {
  return Math.round(performance.now() - call.startedAt);
}

/**
 * The answer if it comes within `ms` milliseconds, else what `late` returns or throws. The time of
 * a standstill of this process is given again.
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

/** How much later than it was set to a deadline may pass, milliseconds. */
const TICK_MS = 10;

/** A deadline that has not passed yet. */
export interface RunningDeadline {
  /** Ends the wait. May be called again. */
  end(): void;
}

interface Running {
  readonly ms: number;
  readonly passed: () => void;
  /** When it passes, milliseconds of the monotonic clock. */
  due: number;
  /** Whether it got the time of a standstill again. */
  extended: boolean;
}

const running = new LinkedList<Running>();
let ticking = false;

/**
 * Calls `passed` when the wait does not end within `ms` milliseconds.
 *
 * In a process that stood still (a burst of calls, a garbage collection, no processor time) timers
 * are due before it reads what arrived, and its peer may have stood still with it. To call that
 * late would refuse sound calls: so the time in which nothing ran is given again once, up to `ms`,
 * and the sockets are read before the wait is given up.
 */
export function startDeadline(ms: number, passed: () => void): RunningDeadline {
  const place = running.add({ ms, passed, due: performance.now() + ms, extended: false });
  if (!ticking) {
    ticking = true;
    setTimeout(tick, TICK_MS);
  }
  return { end: () => void running.remove(place) };
}

function tick(): void {
  const now = performance.now();
  let overdue: Place<Running>[] | undefined;
  for (const place of running) {
    const one = place.member;
    if (now < one.due) continue;
    const stoodStillMs = now - one.due - TICK_MS;
    if (!one.extended && stoodStillMs > 0) {
      one.extended = true;
      one.due = now + Math.min(stoodStillMs, one.ms);
    } else {
      overdue ??= [];
      overdue.push(place);
    }
  }
  // An event loop polls its sockets between its timers and its immediates.
  if (overdue !== undefined) setImmediate(giveUp, overdue);
  ticking = running.size > 0;
  if (ticking) setTimeout(tick, TICK_MS);
}

function giveUp(overdue: readonly Place<Running>[]): void {
  for (const place of overdue) if (running.remove(place)) place.member.passed();
}

let lastMs = Number.NaN;
let lastText = '';

/**
 * A time as ISO 8601 with milliseconds and `Z`. The last text is kept: making one takes longer than
 * the rest of an event.
 * @param ms Unix milliseconds. @throws RangeError beyond what a Date holds
 */
export function isoTime(ms: number = Date.now()): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}

/** How often the process notes that it runs, milliseconds. */
const BEAT_MS = 500;
/** A process this late did not run: it was stopped or had no processor time, milliseconds. */
const STOOD_STILL_MS = 1_000;

/** Notes when this process stood still: a caller that waited in that time was not slow. */
export class Standstill {
  readonly #timer: NodeJS.Timeout;
  #beatAt = performance.now();
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor() {
    this.#timer = setInterval(() => this.#beat(), BEAT_MS);
    this.#timer.unref();
  }

  /** Whether a standstill ended within the last `ms` milliseconds. */
  within(ms: number): boolean {
    // Timers that are due together come in any order, and this one may be the last of them.
    this.#beat();
    return this.#beatAt - this.#endedAt <= ms;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    const now = performance.now();
    if (now - this.#beatAt >= BEAT_MS + STOOD_STILL_MS) this.#endedAt = now;
    this.#beatAt = now;
  }
}
