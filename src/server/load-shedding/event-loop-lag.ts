/** Measures how long turns of the event loop are; the overload detector reads it. */

import { performance } from 'node:perf_hooks';

/**
 * Measures the turns of the event loop in which calls come in. All requests of a turn were waiting
 * when it began, so its length is how long one waits before its work begins; a call that takes
 * eight turns waits eight times. One `setImmediate` marks the end of such a turn; turns without
 * calls cost nothing and do not count.
 */
export class Turns {
  readonly #now: () => number;
  #began = 0;
  #open = false;
  #came = false;
  #ms = 0;
  #count = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** A call came in. */
  came(): void {
    this.#came = true;
    if (this.#open) return;
    this.#open = true;
    this.#began = this.#now();
    setImmediate(this.#next);
  }

  /** The mean length of those that ended since the last call, milliseconds; 0 if there was none. */
  take(): number {
    const mean = this.#count === 0 ? 0 : this.#ms / this.#count;
    this.#ms = 0;
    this.#count = 0;
    return mean;
  }

  readonly #next = (): void => {
    const now = this.#now();
    this.#ms += now - this.#began;
    this.#count += 1;
    // The next turn is measured from its beginning, not from its first call: work before the call
    // delays it as well.
    this.#open = this.#came;
    if (!this.#came) return;
    this.#came = false;
    this.#began = now;
    setImmediate(this.#next);
  };
}

/** How the event loop did since the last reading. */
export interface EventLoopLag {
  /** The mean length of the turns in which calls came in, milliseconds; 0 when none came. */
  readonly turnMs: number;
  /** Share of the time in which it had something to do, 0 to 1. */
  readonly busy: number;
}

/** Reads the event loop of this process. */
export function readEventLoopLag(turns: Turns): () => EventLoopLag {
  let before = performance.eventLoopUtilization();
  return function read() {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return { turnMs: turns.take(), busy: utilization };
  };
}
