/** How often the event loop's delay is judged, milliseconds. */
export const JUDGE_MS = 50;
/** A loop whose turns are longer than this, for a whole JUDGE_MS, has a queue that stands: overload begins, milliseconds. */
export const OVERLOAD_TURN_MS = 10;
/** It ends when for this long hardly anything had to be shed, milliseconds. */
export const CALM_MS = 1_000;
/** What "hardly anything" is: this share of the calls that came. */
export const CALM_SHARE = 0.02;

/**
 * Whether the process is overloaded, with hysteresis: it begins with turns that are long for a while, not with one long turn, and
 * ends with the arrivals, not with the delay, because shedding is what keeps the delay down.
 */
export class Pressure {
  #overloaded = false;
  #came = 0;
  #shed = 0;
  #since = 0;

  get overloaded(): boolean {
    return this.#overloaded;
  }

  /** Counts a call that came while overloaded. */
  came(shed: boolean): void {
    this.#came += 1;
    if (shed) this.#shed += 1;
  }

  /** Takes the typical turn of the last JUDGE_MS. Both in milliseconds, `now` of a monotonic clock. */
  judge(turnMs: number, now: number): void {
    if (!this.#overloaded) {
      if (turnMs < OVERLOAD_TURN_MS) return;
      this.#overloaded = true;
      this.#begin(now);
      return;
    }
    if (now - this.#since < CALM_MS) return;
    this.#overloaded = this.#shed > this.#came * CALM_SHARE;
    this.#begin(now);
  }

  #begin(now: number): void {
    this.#came = 0;
    this.#shed = 0;
    this.#since = now;
  }
}
