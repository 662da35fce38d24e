/** Detects that the process did not run for a while; the listener excuses what came late by it. */

/** How often the process notes that it runs, milliseconds. */
const BEAT_MS = 500;
/** A process this late did not run: it was stopped or had no processor time, milliseconds. */
const STOOD_STILL_MS = 1_000;

/** Knows when this process stood still: a caller that waited for it then was not slow. */
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
