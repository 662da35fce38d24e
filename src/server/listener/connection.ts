/**
 * The connections of a listener: gives the parser of each one request at a time and keeps later
 * bytes; bounds the number of connections, of one client too, and the bytes that all hold together.
 */

import type http from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Places } from '../../limiter.ts';
import { LinkedList, type Place } from '../../linked-list.ts';
import { onceClosed } from '../http/access-record.ts';
import { isBodyRelayed } from '../http/request.ts';
import { networkOf } from '../limits/client-address.ts';

/** From so many bytes behind a running request on, the socket reads no more. */
const MOST_BEHIND = 32_768;
const NOTHING = Buffer.alloc(0);
/** The end of every head and of every chunked body: the end of a line, and an empty line. */
const EMPTY_LINE = '\n\r\n';

/** The key of a connection on the socket itself: each request looks it up. */
const CONNECTION = Symbol('its connection');

interface Noted extends Duplex {
  [CONNECTION]?: Connection;
}

function noteConnection(socket: Noted, connection: Connection): void {
  socket[CONNECTION] = connection;
}

/** The connection of a socket; undefined: it is of another server. */
export function connectionOf(socket: Noted): Connection | undefined {
  return socket[CONNECTION];
}

/** Parts that a listener gives a connection. */
interface ConnectionParts {
  readonly socket: Socket;
  /** The network of the client; undefined: no shares are taken. */
  readonly client: string | undefined;
  /** Called when bytes wait, so that `bytes` has changed. */
  readonly onWaiting: (connection: Connection) => void;
}

/**
 * Stands between a socket and Node's parser, which makes a request and a response of each head at
 * once: 64 KiB can hold some thousand heads. Here the parser gets pieces that end where a message
 * may end, and no piece behind a request until it is answered. Later bytes wait here, not in the
 * socket: a socket with unread bytes does not tell that its client has left.
 */
export class Connection {
  readonly socket: Socket;
  /** The client whose share counts this connection; undefined: none. */
  client: string | undefined;
  /** Its place among the connections of the listener. */
  place: Place<Connection> | undefined;
  /** The part of `bytes` that the listener has counted. */
  counted = 0;
  readonly #onWaiting: (connection: Connection) => void;
  readonly #parse: (piece: Buffer) => void;
  /** The answer of the last request, until both are over: an idle connection keeps neither. */
  #answer: http.ServerResponse | undefined;
  /** Bytes missing of a body of declared length, and those that came of an unfinished request. */
  #missing = 0;
  #came = 0;
  /** The last two bytes of the last piece, and where its first empty line ended. */
  #tail = '';
  #headEnd = 0;
  /** Bytes that came with the piece that the parser has now. */
  #behind: Buffer | undefined;
  /** Bytes that came behind the running request. */
  #waiting: Buffer = NOTHING;
  #reads: 'all' | 'body' | 'dropped' | 'nothing' | 'upgraded' = 'all';

  constructor({ socket, client, onWaiting }: ConnectionParts) {
    this.socket = socket;
    this.client = client;
    this.#onWaiting = onWaiting;
    // Node's own listener gives all bytes to the parser. With a foreign listener Node also keeps
    // the parser from reading from the operating system.
    const [parse] = socket.listeners('data') as ((piece: Buffer) => void)[];
    if (parse === undefined) throw new Error('this is no connection of a server of HTTP');
    this.#parse = parse;
    socket.off('data', parse);
    socket.on('data', this.#read);
  }

  /** The answer that runs, or undefined between two requests. */
  get running(): http.ServerResponse | undefined {
    return this.#answer?.closed === false ? this.#answer : undefined;
  }

  /** Whether closing it ends no request. */
  get isIdle(): boolean {
    return this.#reads !== 'upgraded' && this.#mayBegin && !this.isFollowed;
  }

  /** Bytes in memory for its client: unread and unfinished requests, unsent answers. */
  get bytes(): number {
    const { readableLength, writableLength } = this.socket;
    const req = this.#answer?.req;
    const isRelayed = req?.complete === false && isBodyRelayed(req);
    return readableLength + writableLength + this.#waiting.length + (isRelayed ? 0 : this.#came);
  }

  /** Notes the request that the parser has just made of a head. */
  began(res: http.ServerResponse): void {
    this.#answer = res;
    onceClosed(res, this.#closed);
    this.#came = 0;
    const { headers } = res.req;
    this.#missing = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : 0;
  }

  /** Whether more has come than has been read. */
  get isFollowed(): boolean {
    return this.socket.readableLength + this.#waiting.length + (this.#behind?.length ?? 0) > 0;
  }

  /** Notes that the socket does not take all of an answer at once. */
  waits(): void {
    this.#onWaiting(this);
  }

  /** Its last answer is on its way: a request behind it is not read (RFC 9112, 9.6). */
  ends(): void {
    if (this.#reads === 'all') this.#reads = 'body';
  }

  /** Reads nothing more. */
  stops(): void {
    this.#reads = 'nothing';
  }

  /** Drops later bytes, because the parser cannot read them. False: it does so already. */
  drops(): boolean {
    const did = this.#reads !== 'dropped';
    this.#reads = 'dropped';
    return did;
  }

  /** Leaves the socket to another protocol, with the bytes that it already has. */
  upgraded(): void {
    this.#reads = 'upgraded';
    this.socket.off('data', this.#read);
    if (this.#behind !== undefined && this.#behind.length > 0) this.socket.unshift(this.#behind);
  }

  readonly #read = (bytes: Buffer): void => {
    let rest = bytes;
    while (rest.length > 0 && !this.socket.destroyed && this.#reads !== 'upgraded') {
      if (this.#waiting.length > 0 || !this.#mayRead) {
        this.#keep(rest);
        return;
      }
      const end = this.#endOfPiece(rest);
      const piece = end === rest.length ? rest : rest.subarray(0, end);
      rest = rest.subarray(end);
      this.#behind = rest;
      this.#give(piece);
    }
    this.#behind = undefined;
    if (this.#came > 0) this.#onWaiting(this);
  };

  /** Gives a piece to the parser, which calls `began` where a head ends in it. */
  #give(piece: Buffer): void {
    const last = this.#answer;
    const inBody = last?.req.complete === false;
    this.#parse(piece);
    const began = this.#answer !== last;
    const given = began ? piece.length - this.#headEnd : piece.length;
    const ofBody = Math.min(this.#missing, given);
    this.#missing -= ofBody;
    // Behind the end of a request the piece has a part of the next head.
    if ((began || inBody) && this.#answer?.req.complete === true) this.#came = given - ofBody;
    else this.#came += given;
  }

  /** Whether the last request is whole and answered. */
  get #mayBegin(): boolean {
    return this.#answer === undefined || (this.#answer.closed && this.#answer.req.complete);
  }

  get #mayRead(): boolean {
    if (this.#reads === 'all') return this.#answer?.req.complete !== true || this.#answer.closed;
    return this.#reads === 'body' && this.#answer?.req.complete === false;
  }

  /**
   * The end of the next piece. An empty line ends every head and every body without a declared
   * length, so bytes with no more than one make no second request.
   */
  #endOfPiece(bytes: Buffer): number {
    if (this.#missing > 0) return Math.min(this.#missing, bytes.length);
    this.#headEnd = this.#endOfLines(bytes);
    let end = this.#headEnd;
    if (bytes.indexOf(EMPTY_LINE, end, 'latin1') === -1) end = bytes.length;
    // Empty lines in front of a head belong to none: thousands of them are one piece.
    while (bytes[end] === 0x0d || bytes[end] === 0x0a) end += 1;
    this.#tail = (this.#tail + bytes.toString('latin1', Math.max(0, end - 2), end)).slice(-2);
    return end;
  }

  /** The end of the first empty line, of which the last piece may have the beginning. */
  #endOfLines(bytes: Buffer): number {
    const seam = this.#tail + bytes.toString('latin1', 0, 2);
    const across = seam.indexOf(EMPTY_LINE);
    if (across !== -1) return across + EMPTY_LINE.length - this.#tail.length;
    const at = bytes.indexOf(EMPTY_LINE, 0, 'latin1');
    return at === -1 ? bytes.length : at + EMPTY_LINE.length;
  }

  /** Keeps bytes until they may be read. */
  #keep(bytes: Buffer): void {
    if (this.#reads === 'nothing') this.socket.pause();
    // Bytes behind the last answer are dropped.
    if (this.#reads !== 'all') return;
    this.#waiting = this.#waiting.length === 0 ? ownCopy(bytes) : Buffer.concat([this.#waiting, bytes]);
    if (this.#waiting.length >= MOST_BEHIND) this.socket.pause();
    this.#onWaiting(this);
  }

  /** The answer is closed. */
  readonly #closed = (): void => {
    if (this.#answer?.req.complete === true) this.#answer = undefined;
    // The next request begins in another turn of the event loop: other connections have theirs.
    if (this.#waiting.length > 0) setImmediate(this.#readOn);
  };

  readonly #readOn = (): void => {
    const waiting = this.#waiting;
    this.#waiting = NOTHING;
    this.#read(waiting);
    const isRead = this.#reads !== 'nothing' && this.#reads !== 'upgraded';
    if (isRead && this.#waiting.length < MOST_BEHIND) this.socket.resume();
  };
}

/** Copies a few bytes: their slice would keep the whole buffer in memory that they came in. */
function ownCopy(bytes: Buffer): Buffer {
  return 2 * bytes.length < bytes.buffer.byteLength ? Buffer.from(new Uint8Array(bytes).buffer) : bytes;
}

/**
 * Bytes that all connections of a listener may hold together: requests behind a running one,
 * bodies that have not come as a whole, answers that their clients do not read.
 */
export const MAX_WAITING_BYTES = 33_554_432;
/** Bytes that all connections may keep after a cut: room before the next count, of some 0.1 ms. */
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
 * Takes connections. A connection beyond the bound replaces the idle one whose last request is
 * longest ago; a client with a full share replaces one of its own. No connection with an unanswered
 * request is replaced.
 */
export class Room {
  readonly #parts: RoomParts;
  /** In the order of their last requests, the longest ago first. */
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
      // The new connection takes over this part of the share.
      own.client = undefined;
      this.#close(own);
      return true;
    }
    const idle = hasRoom ? undefined : this.#longestIdle();
    if (idle === undefined) return false;
    const freed = idle.client === undefined ? 0 : 1;
    if (client !== undefined && !this.#shares.hasShare([client], freed)) return false;
    this.#close(idle);
    return client === undefined || this.#shares.take([client]);
  }

  #longestIdle(client?: string): Connection | undefined {
    for (let place = this.#open.first; place !== undefined; place = place.behind)
      if ((client === undefined || place.member.client === client) && place.member.isIdle) return place.member;
    return undefined;
  }

  /** Counts the bytes of a connection; cuts those with the most bytes when all hold too many. */
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
