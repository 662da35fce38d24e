/** The deadline of one exchange with the backend: two clocks, of which one runs at a time. */

/** What is left of each side's time, milliseconds. */
interface TimeLeft {
  readonly backend: number;
  readonly reader: number;
}

/**
 * The deadline of an exchange, running from construction. It is the backend's: while the reader
 * holds the answer back that clock stands still, so that an agent on a slow line cannot make a paid
 * backend late. The reader has a clock of its own.
 */
export class Deadline {
  readonly #late: () => void;
  readonly #left: { backend: number; reader: number };
  #running: keyof TimeLeft = 'backend';
  #since = performance.now();
  #timer: NodeJS.Timeout;

  /** `late` is called when either clock runs out. */
  constructor(left: TimeLeft, late: () => void) {
    this.#late = late;
    this.#left = { ...left };
    this.#timer = setTimeout(late, left.backend);
  }

  /** Whose clock runs. */
  get running(): keyof TimeLeft {
    return this.#running;
  }

  /** Stops the clock that runs and starts that of the other side. */
  handOver(): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    this.#left[this.#running] -= now - this.#since;
    this.#since = now;
    this.#running = this.#running === 'backend' ? 'reader' : 'backend';
    this.#timer = setTimeout(this.#late, Math.max(1, this.#left[this.#running]));
  }

  /** Stops both clocks. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
