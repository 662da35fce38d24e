import type { Connection } from './backend-socket.ts';

/**
 * The connections to one merchant. The one that was used last is used next, because its socket is the likeliest to be open. Who takes
 * one has a place in a `SocketQueue` of the same size, and gives the connection back before the place.
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
    // One whose last request was given up may still be connecting for it, or closing: the next request would wait for that.
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
