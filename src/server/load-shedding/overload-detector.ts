import type { EventLoopLag } from './event-loop-lag.ts';

/** How often the event loop is judged, milliseconds. */
export const JUDGE_MS = 25;
/** A loop whose turns are longer than this has more to do than it can, milliseconds. */
export const OVERLOAD_TURN_MS = 20;
/**
 * The limit on calls in flight that an overload begins with, unless more are in flight already: a
 * burst of less, such as the copies of one proof that arrive together, is none.
 */
export const FIRST_LIMIT = 128;
/** So few calls cannot be what delays the loop: the limit is never lower. */
export const HARMLESS_IN_FLIGHT = 16;
/** The length of a turn that the limit is led to, milliseconds. */
export const TARGET_TURN_MS = 4;
/** The least and the most that one judgement multiplies the limit by. */
export const LOWER = 0.25;
export const RAISE = 1.05;
/**
 * How long an overload lasts at least, and between two looks at whether it is over, milliseconds.
 */
export const CALM_MS = 1_000;
/** It is over when no more than this share of the calls that came had to be shed, */
export const CALM_SHARE = 0.02;
/**
 * or when the loop had nothing to do for the rest of the time: then it was bursts that were shed,
 * which it could have served.
 */
export const CALM_BUSY = 0.75;

/**
 * Whether the process is overloaded, with hysteresis, and how many calls may be in flight while it
 * is. It begins with a long turn: that alone refuses nobody, for the limit it begins with is above
 * what is in flight. Its end cannot be read from the turns, because shedding is what keeps them
 * short.
 *
 * The limit follows the length of the turns, as long as calls meet it: down where turns are too
 * long, up step by step where they are short. So it need not be known what a call costs, nor how
 * long merchants take: with a slow one the limit finds its place in the hundreds, with a fast one
 * and payments at twenty.
 */
export class OverloadDetector {
  #overloaded = false;
  #limit = FIRST_LIMIT;
  /** Whether a call met the limit since the last judgement. */
  #bound = false;
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
    this.#bound = true;
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
    this.#lead(turnMs);
    const lasted = now - this.#since;
    if (lasted < CALM_MS) return;
    this.#overloaded = this.#shed > this.#came * CALM_SHARE && this.#busyMs > lasted * CALM_BUSY;
    this.#begin(now);
  }

  #lead(turnMs: number): void {
    // Where nobody met it, it is not the calls it let in that make the turns long; and raised, it
    // would be none when the next wave comes.
    if (!this.#bound) return;
    this.#bound = false;
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
