/** Detects overload from the turns of the event loop, and sets the limit on calls in flight. */

import type { EventLoopLag } from './event-loop-lag.ts';

/** How often the event loop is judged, milliseconds. */
export const JUDGE_MS = 25;
/** Longer turns are an overload, milliseconds. */
export const OVERLOAD_TURN_MS = 20;
/**
 * The limit on calls in flight that an overload begins with, unless more are in flight. A smaller
 * burst, such as the copies of one proof that arrive together, is not shed.
 */
export const FIRST_LIMIT = 128;
/** The limit is never lower: so few calls cannot be what delays the loop. */
export const HARMLESS_IN_FLIGHT = 16;
/** The length of a turn that the limit aims at, milliseconds. */
export const TARGET_TURN_MS = 4;
/** The least and the most that one judgement multiplies the limit by. */
export const LOWER = 0.25;
export const RAISE = 1.05;
/** How long an overload lasts at least, and between two checks whether it is over, milliseconds. */
export const CALM_MS = 1_000;
/** It is over when at most this share of the calls was shed, */
export const CALM_SHARE = 0.02;
/** or when the loop was busy for at most this share: then it could have served what was shed. */
export const CALM_BUSY = 0.75;

/**
 * Decides whether the process is overloaded, with hysteresis, and how many calls may be in flight
 * while it is. An overload begins with a long turn. That alone refuses no call, because the first
 * limit is not below what is in flight. Its end cannot be read from the turns, because shedding
 * keeps them short.
 *
 * The limit follows the length of the turns as long as calls reach it: down where turns are too
 * long, up step by step where they are short. So neither the cost of a call nor the time of the
 * backend must be known: with a slow backend the limit settles in the hundreds, with a fast one and
 * payments at twenty.
 */
export class OverloadDetector {
  #overloaded = false;
  #limit = FIRST_LIMIT;
  /** Whether a call was shed since the last judgement. */
  #reached = false;
  #came = 0;
  #shed = 0;
  #busyMs = 0;
  #since = 0;
  #judgedAt = 0;

  get overloaded(): boolean {
    return this.#overloaded;
  }

  /** Calls that may be in flight while overloaded. */
  get limit(): number {
    return this.#limit;
  }

  /** Counts a call that came while overloaded. */
  came(shed: boolean): void {
    this.#came += 1;
    if (!shed) return;
    this.#shed += 1;
    this.#reached = true;
  }

  /**
   * Takes what the loop did since the last judgement. `inFlight`: calls, now; `now`: milliseconds
   * of a monotonic clock.
   */
  judge({ turnMs, busy }: EventLoopLag, inFlight: number, now: number): void {
    this.#busyMs += busy * (now - this.#judgedAt);
    this.#judgedAt = now;
    if (!this.#overloaded) {
      if (turnMs < OVERLOAD_TURN_MS) return;
      this.#overloaded = true;
      this.#limit = Math.max(FIRST_LIMIT, inFlight);
      this.#begin(now);
      return;
    }
    this.#adjust(turnMs);
    const lasted = now - this.#since;
    if (lasted < CALM_MS) return;
    this.#overloaded = this.#shed > this.#came * CALM_SHARE && this.#busyMs > lasted * CALM_BUSY;
    this.#begin(now);
  }

  #adjust(turnMs: number): void {
    // A limit that no call reached does not make the turns long or short; and one that was raised
    // meanwhile would not hold against the next burst.
    if (!this.#reached) return;
    this.#reached = false;
    const factor = turnMs === 0 ? RAISE : Math.min(RAISE, Math.max(LOWER, TARGET_TURN_MS / turnMs));
    this.#limit = Math.max(HARMLESS_IN_FLIGHT, this.#limit * factor);
  }

  #begin(now: number): void {
    this.#came = 0;
    this.#shed = 0;
    this.#busyMs = 0;
    this.#since = now;
  }
}
