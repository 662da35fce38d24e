/** The queue for a backend's sockets and the pool of its connections; each exchange uses both. */

import { LinkedList, type Place } from '../linked-list.ts';
import type { Connection } from './backend-socket.ts';

/** Where one waits for a socket; undefined: it got one at once. */
export type SocketTurn = Place<() => void> | undefined;

/**
 * The queue for the sockets of a backend, first come first served. It is not left to the client
 * library, because a call must leave it as soon as its deadline passes, certain that nothing was
 * written.
 */
export class SocketPoolQueue {
  #free: number;
  readonly #waiting = new LinkedList<() => void>();

  /** `sockets`: how many exchanges may be with the backend at once. */
  constructor(sockets: number) {
    this.#free = sockets;
  }

  /**
   * Calls `start`, now or in turn, when a socket may be used; `release` follows exactly once. The
   * result is for `leave`.
   */
  take(start: () => void): SocketTurn {
    if (this.#free === 0) return this.#waiting.add(start);
    this.#free -= 1;
    start();
    return undefined;
  }

  /** Whether an exchange waits. */
  get wanted(): boolean {
    return this.#waiting.size > 0;
  }

  /** Leaves the queue. False when `start` was called already: then `release` must follow. */
  leave(turn: SocketTurn): boolean {
    return turn !== undefined && this.#waiting.remove(turn);
  }

  release(): void {
    const next = this.#waiting.first;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.remove(next);
    next.member();
  }
}

/**
 * The connections to one backend. The one that was used last is used next, because its socket is
 * the likeliest to be open. A taker has its turn in a `SocketPoolQueue` of the same size, and gives
 * the connection back before it releases the turn.
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
