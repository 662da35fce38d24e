/** The limit of a backend's sockets and the pool of its connections; each exchange uses both. */

import { Limiter } from '../limiter.ts';
import type { Connection } from './backend-socket.ts';

/** How long a call waits for a socket before its money moves, milliseconds. */
const SOCKET_WAIT_MS = 2_000;

/**
 * Limits the sockets of a backend. An exchange waits here and not in the client library, because it
 * must stop waiting at its own deadline, certain that nothing was written.
 */
export function limitSockets(sockets: number): Limiter {
  return new Limiter({
    most: sockets,
    kinds: ['reservation', 'exchange'],
    waitMs: (_rank, kind) => (kind === 'reservation' ? SOCKET_WAIT_MS : Number.POSITIVE_INFINITY),
  });
}

/**
 * The connections to one backend. The one that was used last is used next, because its socket is
 * the likeliest to be open. A taker has its place in a limiter of the same size, and gives
 * the connection back before it leaves that.
 */
export class ConnectionPool {
  readonly #most: number;
  readonly #create: () => Connection;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];

  /** `most`: how many connections there may be, each with one socket. */
  constructor(most: number, create: () => Connection) {
    this.#most = most;
    this.#create = create;
  }

  /** A connection that is the caller's until it gives it back. Its socket may be closed. */
  take(): Connection {
    // One whose last request was given up may still be connecting or closing for it, and the next
    // request would wait.
    const free = this.#idle.findLastIndex((connection) => connection.stats.size === 0);
    const [idle] = free < 0 ? [] : this.#idle.splice(free, 1);
    const taken = idle ?? this.#created() ?? this.#idle.pop();
    if (taken === undefined) throw new Error('more connections were taken than there are sockets');
    taken.inUse();
    return taken;
  }

  giveBack(connection: Connection): void {
    if (!this.#all.has(connection)) return;
    connection.idle();
    this.#idle.push(connection);
  }

  /** Waits for what runs, and closes the sockets. */
  async close(): Promise<void> {
    await Promise.all(this.#emptied().map((connection) => connection.close()));
  }

  /** Ends what runs, and closes the sockets; what is taken after that is new. */
  async destroy(): Promise<void> {
    const ended = this.#emptied();
    this.#all.clear();
    this.#idle.length = 0;
    await Promise.all(ended.map((connection) => connection.destroy()));
  }

  #created(): Connection | undefined {
    if (this.#all.size === this.#most) return undefined;
    const created = this.#create();
    this.#all.add(created);
    return created;
  }

  #emptied(): readonly Connection[] {
    for (const connection of this.#idle) connection.inUse();
    return [...this.#all];
  }
}
