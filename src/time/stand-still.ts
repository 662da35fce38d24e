/** How often the process notes that it runs, milliseconds. */
const BEAT_MS = 500;
/**
 * A process that is this late did not run: it was stopped, or had no share of the processor,
 * milliseconds.
 */
const STOOD_STILL_MS = 1_000;

/** Knows whether this process stood still: whoever waited for it then has not been slow. */
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
