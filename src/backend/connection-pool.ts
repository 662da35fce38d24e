import type { Connection } from './backend-socket.ts';

/**
 * The line in front of the merchant's sockets, first come first served. Kept here and not in the
 * client library, because only an own queue lets a call leave the line the moment its deadline
 * passes, and be certain that nothing was written.
 */
export class SocketPoolQueue {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** `sockets`: how many exchanges may be with the merchant at once. */
  constructor(sockets: number) {
    this.#free = sockets;
  }

  /**
   * Calls `start` when a socket may be used: at once, or in turn. Each started exchange calls
   * `release` exactly once.
   */
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

  /**
   * Leaves the line. False when `start` was already called: then it is `release` that has to
   * follow.
   */
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

/**
 * The connections to one merchant. The one that was used last is used next, because its socket is
 * the likeliest to be open. Who takes one has a place in a `SocketQueue` of the same size, and
 * gives the connection back before the place.
 */
export class ConnectionPool {
  readonly #most: number;
  readonly #create: () => Connection;
  readonly #all = new Set<Connection>();
  readonly #resting: Connection[] = [];

  /** `most`: how many connections there may be, each with one socket. */
  constructor(most: number, create: () => Connection) {
    this.#most = most;
    this.#create = create;
  }

  /** A connection that is the caller's until it gives it back. Its socket may be closed. */
  take(): Connection {
    // One whose last request was given up may still be connecting for it, or closing: the next
    // request would wait for that.
    const free = this.#resting.findLastIndex((connection) => connection.stats.size === 0);
    const [rested] = free < 0 ? [] : this.#resting.splice(free, 1);
    const taken = rested ?? this.#created() ?? this.#resting.pop();
    if (taken === undefined) throw new Error('more connections were taken than there are places');
    taken.busy();
    return taken;
  }

  giveBack(connection: Connection): void {
    connection.rest();
    this.#resting.push(connection);
  }

  /** Waits for what runs, and closes the sockets. */
  async close(): Promise<void> {
    await Promise.all(this.#emptied().map((connection) => connection.close()));
  }

  /** Ends what runs, and closes the sockets. */
  async destroy(): Promise<void> {
    await Promise.all(this.#emptied().map((connection) => connection.destroy()));
  }

  #created(): Connection | undefined {
    if (this.#all.size === this.#most) return undefined;
    const created = this.#create();
    this.#all.add(created);
    return created;
  }

  #emptied(): readonly Connection[] {
    for (const resting of this.#resting) resting.busy();
    return [...this.#all];
  }
}
