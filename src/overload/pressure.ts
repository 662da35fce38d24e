import type { LoopReading } from './loop-reading.ts';

/** How often the event loop is judged, milliseconds. */
export const JUDGE_MS = 50;
/** A loop whose turns are longer than this has a queue that stands, milliseconds; */
export const OVERLOAD_TURN_MS = 10;
/** it is overloaded when so many judgements in a row say so: a burst of calls that come together is over by then. */
export const OVERLOAD_JUDGEMENTS = 3;
/** How long it lasts at least, and between two looks at whether it is over, milliseconds. */
export const CALM_MS = 1_000;
/** It is over when no more than this share of the calls that came had to be shed, */
export const CALM_SHARE = 0.02;
/** or when the loop had nothing to do for the rest of the time: then it was bursts that were shed, which it could have served. */
export const CALM_BUSY = 0.75;

/**
 * Whether the process is overloaded, with hysteresis. It begins with turns that are long for a while, not with one long turn. Its end
 * cannot be read from the turns, because shedding is what keeps them short.
 */
export class Pressure {
  #overloaded = false;
  /** Judgements in a row that found long turns. */
  #long = 0;
  #came = 0;
  #shed = 0;
  #busyMs = 0;
  #since = 0;
  #judgedAt = 0;

  get overloaded(): boolean {
    return this.#overloaded;
  }

  /** Counts a call that came while overloaded. */
  came(shed: boolean): void {
    this.#came += 1;
    if (shed) this.#shed += 1;
  }

  /** Takes what the loop did since the last judgement. `now`: milliseconds of a monotonic clock. */
  judge({ turnMs, busy }: LoopReading, now: number): void {
    this.#busyMs += busy * (now - this.#judgedAt);
    this.#judgedAt = now;
    if (!this.#overloaded) {
      this.#long = turnMs < OVERLOAD_TURN_MS ? 0 : this.#long + 1;
      if (this.#long < OVERLOAD_JUDGEMENTS) return;
      this.#long = 0;
      this.#overloaded = true;
      this.#begin(now);
      return;
    }
    const lasted = now - this.#since;
    if (lasted < CALM_MS) return;
    this.#overloaded = this.#shed > this.#came * CALM_SHARE && this.#busyMs > lasted * CALM_BUSY;
    this.#begin(now);
  }

  #begin(now: number): void {
    this.#came = 0;
    this.#shed = 0;
    this.#busyMs = 0;
    this.#since = now;
  }
}
