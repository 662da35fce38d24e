/** Deadlines of many short waits on one timer: most end in time, and cost none of their own. */

import { LinkedList, type Place } from '../linked-list.ts';

/** How much later than it was set to a deadline may pass, milliseconds. */
const TICK_MS = 10;

/** A deadline that has not passed yet. */
export interface RunningDeadline {
  /** The wait is over. May be called again. */
  end(): void;
}

interface Running {
  readonly ms: number;
  readonly passed: () => void;
  /** When it passes, milliseconds of the monotonic clock. */
  due: number;
  /** It got the time of a standstill again. */
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
