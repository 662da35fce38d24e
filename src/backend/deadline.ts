/** How long a reader may hold an answer back, all in all, milliseconds. */
export const READER_HOLD_MS = 60_000;

/** What is left of each side's time, milliseconds. */
export interface Turns {
  readonly merchant: number;
  readonly reader: number;
}

/**
 * The deadline of an exchange, running from construction. It is the merchant's: while the reader holds the answer back the clock stands
 * still, so that an agent on a slow line cannot make a merchant late whom it has paid. The reader has a clock of his own for that.
 */
export class Deadline {
  readonly #late: () => void;
  readonly #left: { merchant: number; reader: number };
  #turn: keyof Turns = 'merchant';
  #since = performance.now();
  #timer: NodeJS.Timeout;

  /** `late` is called when either clock runs out. */
  constructor(left: Turns, late: () => void) {
    this.#late = late;
    this.#left = { ...left };
    this.#timer = setTimeout(late, left.merchant);
  }

  /** Whose clock runs. */
  get turn(): keyof Turns {
    return this.#turn;
  }

  /** Stops the clock that runs and starts that of the other side. */
  handOver(): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    this.#left[this.#turn] -= now - this.#since;
    this.#since = now;
    this.#turn = this.#turn === 'merchant' ? 'reader' : 'merchant';
    this.#timer = setTimeout(this.#late, Math.max(1, this.#left[this.#turn]));
  }

  /** Nobody is late any more. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
