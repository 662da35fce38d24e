/**
 * How long the present turn of the event loop has been running. All requests of a turn were waiting when it began, so this is how long
 * one has waited at least. While it is asked, one `setImmediate` a turn marks where the next one begins; the first question after a
 * pause begins a turn itself.
 */
export class Turn {
  readonly #now: () => number;
  #began = 0;
  #number = 0;
  #marked = false;
  #asked = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Another one in each turn that was asked about. */
  get number(): number {
    return this.#number;
  }

  /** Milliseconds. */
  elapsed(): number {
    const now = this.#now();
    this.#asked = true;
    if (!this.#marked) {
      this.#marked = true;
      this.#number += 1;
      this.#began = now;
      setImmediate(this.#next);
    }
    return now - this.#began;
  }

  readonly #next = (): void => {
    this.#marked = this.#asked;
    if (!this.#asked) return;
    this.#asked = false;
    this.#number += 1;
    this.#began = this.#now();
    setImmediate(this.#next);
  };
}
