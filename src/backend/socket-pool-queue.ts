/**
 * The line in front of the merchant's sockets, first come first served. Kept here and not in the client library, because only
 * an own queue lets a call leave the line the moment its deadline passes, and be certain that nothing was written.
 */
export class SocketPoolQueue {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** `sockets`: how many exchanges may be with the merchant at once. */
  constructor(sockets: number) {
    this.#free = sockets;
  }

  /** Calls `start` when a socket may be used: at once, or in turn. Each started exchange calls `release` exactly once. */
  take(start: () => void): void {
    if (this.#free === 0) {
      this.#waiting.add(start);
      return;
    }
    this.#free -= 1;
    start();
  }

  /** Whether somebody stands in the line. */
  get wanted(): boolean {
    return this.#waiting.size > 0;
  }

  /** Leaves the line. False when `start` was already called: then it is `release` that has to follow. */
  leave(start: () => void): boolean {
    return this.#waiting.delete(start);
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
