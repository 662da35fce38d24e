/** The connections of a listener: how many there may be, of one client too, and what they hold. */

import type { Socket } from 'node:net';
import { Places } from '../../limiter.ts';
import { LinkedList } from '../../linked-list.ts';
import { networkOf } from '../limits/client-address.ts';
import { Connection, noteConnection } from './connection.ts';

/**
 * Bytes that all connections of a listener may hold together: requests behind a running one,
 * bodies that have not come as a whole, answers that their clients do not read.
 */
export const MAX_WAITING_BYTES = 33_554_432;
/** Bytes that stay where they held more: to count all of them again takes some 0.1 ms. */
const LEFT_BYTES = (7 * MAX_WAITING_BYTES) / 8;

/** Why a connection was closed that had not ended. */
export type CutReason = 'too_many_connections' | 'unread_bytes';

interface RoomParts {
  /** Most connections; asked for each. */
  readonly most: () => number;
  /** Whether the address of a peer is that of a client: behind a proxy it is not. */
  readonly sharesClients: () => boolean;
  readonly onCut: (reason: CutReason) => void;
}

/**
 * Takes connections. One too many takes the place of the one whose last request is longest ago; a
 * client that has its share gives one of its own. No connection with a request that is not answered
 * is closed for another one.
 */
export class Room {
  readonly #parts: RoomParts;
  /** By their last request. */
  readonly #open = new LinkedList<Connection>();
  readonly #shares: Places;
  #bytes = 0;

  constructor(parts: RoomParts) {
    this.#parts = parts;
    this.#shares = new Places(parts.most, 'share');
  }

  /** Takes a connection that the server has accepted, or closes it. */
  enter(socket: Socket): void {
    const client = this.#parts.sharesClients() ? (networkOf(socket.remoteAddress ?? '') ?? '-') : undefined;
    if (!this.#hasPlace(client)) {
      socket.destroy();
      this.#parts.onCut('too_many_connections');
      return;
    }
    const connection = new Connection({ socket, client, onWaiting: (waiting) => this.#bound(waiting) });
    noteConnection(socket, connection);
    connection.place = this.#open.add(connection);
    socket.once('close', () => this.#leave(connection));
  }

  /** Notes that a request of a connection has begun. */
  used(connection: Connection): void {
    const { place } = connection;
    if (place === this.#open.last || place === undefined || !this.#open.remove(place)) return;
    connection.place = this.#open.add(connection);
  }

  #hasPlace(client: string | undefined): boolean {
    const hasRoom = this.#open.size < this.#parts.most();
    if (hasRoom && (client === undefined || this.#shares.take([client]))) return true;
    const own = client === undefined ? undefined : this.#longestIdle(client);
    if (own !== undefined) {
      // The new one has its part of the share.
      own.client = undefined;
      this.#close(own);
      return true;
    }
    const idle = hasRoom ? undefined : this.#longestIdle();
    if (idle === undefined) return false;
    this.#close(idle);
    return client === undefined || this.#shares.take([client]);
  }

  #longestIdle(client?: string): Connection | undefined {
    for (let place = this.#open.first; place !== undefined; place = place.behind)
      if ((client === undefined || place.member.client === client) && place.member.isIdle) return place.member;
    return undefined;
  }

  /** Counts what a connection holds, and cuts those that hold most where it is too much. */
  #bound(connection: Connection): void {
    this.#count(connection);
    if (this.#bytes <= MAX_WAITING_BYTES) return;
    const all = [...this.#open].map(({ member }) => member);
    for (const each of all) this.#count(each);
    for (const worst of all.sort((one, other) => other.counted - one.counted)) {
      if (this.#bytes <= LEFT_BYTES) return;
      this.#close(worst);
      this.#parts.onCut('unread_bytes');
    }
  }

  #count(connection: Connection): void {
    const { bytes } = connection;
    this.#bytes += bytes - connection.counted;
    connection.counted = bytes;
  }

  #close(connection: Connection): void {
    this.#leave(connection);
    connection.socket.destroy();
  }

  #leave(connection: Connection): void {
    if (connection.place === undefined || !this.#open.remove(connection.place)) return;
    this.#bytes -= connection.counted;
    connection.counted = 0;
    if (connection.client !== undefined) this.#shares.giveBack([connection.client]);
  }
}
