/** Sets the limit on calls in flight from the turns of the event loop. */

import type { EventLoopLag } from './event-loop-lag.ts';

/** How often the event loop is judged, milliseconds. */
export const JUDGE_MS = 25;
/** Turns that are longer on average lower the limit, milliseconds. */
export const LONG_TURN_MS = 10;
/** The limit is never lower: so many calls keep a core busy, and are not what delays the loop. */
export const LEAST_IN_FLIGHT = 32;
/** The least that one judgement multiplies the limit by: one long turn may be a collection. */
export const LOWER = 0.5;
/** No turn lowers it while the loop has worked for less than this share of the time. */
export const BUSY = 0.75;
/** The weight of one judgement in that share, which so covers about half a second. */
const BUSY_WEIGHT = 0.05;
/** After so many judgements without an end the calls in flight are not what the loop works on. */
export const STUCK = 10;
/** What it is multiplied by while calls wait for it, at least and at most. */
export const RAISE = 1.05;
export const MOST_RAISE = 2;

/**
 * How many calls may be in flight so that turns stay short. New work is bounded turn by turn
 * (`Turns`), but a call goes on after its begin, in pieces that depend on others: the answers to
 * hundreds of payments may come in one turn.
 *
 * There is no limit until turns become long while the loop works all the time: where it has time
 * left, long turns are bursts, and fewer calls would leave it idle. Then it is a share of what was
 * in flight. It rises while calls wait for it: step by step where the loop works all the time, and
 * not before calls that the last rise let in have ended, because what they cost is seen only then.
 * Where the loop has time left it rises by what is missing as they end. Those in flight may wait
 * for a slow backend or a slow caller: so it rises by a step also while none ends, at once where
 * the loop has time left, else after a quarter of a second. So neither the cost of a call nor the
 * time of the backend must be known, and the core is never idle for long while a call waits.
 */
export class InFlightLimit {
  #limit = Number.POSITIVE_INFINITY;
  /** The share of the time that the loop worked lately. */
  #busy = 0;
  /** Most calls in flight since the last judgement, as far as they were seen here. */
  #most = 0;
  /** Calls that ended since then, and since the limit fell. */
  #ended = 0;
  #endedSinceFall = Number.POSITIVE_INFINITY;
  /** Judgements since a call ended. */
  #withoutEnd = 0;
  /** Whether a call had to wait since then. */
  #reached = false;

  /** Calls that may be in flight. */
  get calls(): number {
    return this.#limit;
  }

  /** Whether one more call may begin beside those in flight. */
  allows(inFlight: number): boolean {
    if (inFlight > this.#most) this.#most = inFlight;
    if (inFlight < this.#limit) return true;
    this.#reached = true;
    return false;
  }

  /** Notes that a call ended. */
  ended(): void {
    this.#ended += 1;
  }

  /** Takes what the loop did since the last judgement. */
  judge({ turnMs, busy }: EventLoopLag): void {
    this.#busy += BUSY_WEIGHT * (busy - this.#busy);
    this.#endedSinceFall += this.#ended;
    this.#withoutEnd = this.#ended === 0 ? this.#withoutEnd + 1 : 0;
    if (turnMs > LONG_TURN_MS && this.#busy > BUSY) {
      // The calls that were in flight at the last fall must have ended: until then turns stay long.
      if (this.#endedSinceFall >= this.#most) this.#fall(LONG_TURN_MS / turnMs);
    } else if (this.#reached) {
      const ended = Math.min(1, this.#ended / this.#limit);
      const raise = (Math.min(MOST_RAISE, Math.max(RAISE, 1 / this.#busy)) - 1) * ended;
      const isEarned = this.#busy > BUSY && this.#withoutEnd < STUCK;
      this.#limit *= 1 + (isEarned ? raise : Math.max(RAISE - 1, raise));
    }
    this.#most = 0;
    this.#ended = 0;
    this.#reached = false;
  }

  #fall(factor: number): void {
    this.#limit = Math.max(LEAST_IN_FLIGHT, Math.min(this.#limit, this.#most) * Math.max(LOWER, factor));
    this.#endedSinceFall = 0;
    this.#withoutEnd = 0;
  }
}
