/** The connections to a backend, each with one socket, and the pool that keeps them. */

import { connect, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type buildConnector, Client, type Dispatcher } from 'undici';
import { Limiter } from '../limiter.ts';
import { allowedAddresses } from './forbidden-addresses.ts';

/** How long connecting to the backend may take, milliseconds (contract 3). */
export const CONNECT_TIMEOUT_MS = 2_000;
/** Largest header block of an answer, bytes of names and values. */
const MAX_ANSWER_HEADER_BYTES = 16_384;
/** A timer that is later than this shows that the process stood still, milliseconds. */
const STOOD_STILL_MS = 500;
/** How long an idle socket is kept if the backend sends no `Keep-Alive: timeout=`, milliseconds. */
const IDLE_SOCKET_MS = 4_000;
/** No paid call uses a socket idle for longer, milliseconds; most backends keep one longer. */
const STALE_MS = 1_000;
/** undici closes an idle socket after this, milliseconds: a held one must outlast a settlement. */
const HELD_SOCKET_MS = 70_000;

/** No connection was accepted in time. */
export class ConnectLate extends Error {
  constructor() {
    super('connect deadline passed');
    this.name = 'ConnectLate';
  }
}

/** The socket of one connection, with facts of it that undici does not tell an exchange. */
class BackendSocket {
  #socket: Socket | undefined;
  #exchanges = 0;
  readonly #lookup: LookupFunction;

  /** `resolve`: where names are looked up, `dns.lookup` unless given. */
  constructor(resolve?: LookupFunction) {
    this.#lookup = allowedAddresses(resolve);
  }

  /** Connects within CONNECT_TIMEOUT_MS. The signature is undici's connector. */
  open(options: buildConnector.Options, callback: buildConnector.Callback): void {
    const socket = openSocket(options, this.#lookup);
    const began = performance.now();
    const refuse = (error: Error): void => {
      clearTimeout(deadline);
      callback(error, null);
    };
    const late = (): void => {
      // After a standstill of the process this timer runs before the backend's bytes are read.
      const stoodStill = performance.now() - began > CONNECT_TIMEOUT_MS + STOOD_STILL_MS;
      if (stoodStill) deadline = setTimeout(() => socket.destroy(new ConnectLate()), STOOD_STILL_MS);
      else socket.destroy(new ConnectLate());
    };
    let deadline = setTimeout(late, CONNECT_TIMEOUT_MS);
    socket.once('error', refuse);
    socket.once(options.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      clearTimeout(deadline);
      socket.off('error', refuse);
      this.#socket = socket;
      this.#exchanges = 0;
      callback(null, socket);
    });
  }

  /** Counts an exchange that is about to be written. True when the socket served one before. */
  begin(): boolean {
    this.#exchanges += 1;
    return this.#exchanges > 1;
  }

  /** The socket is open, as far as this turn of the event loop knows. */
  get live(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && !this.#socket.readableEnded;
  }

  /** The socket served an exchange. */
  get used(): boolean {
    return this.#exchanges > 0;
  }

  /** Closes the socket. */
  drop(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  /** The socket ended by an error, not because the backend closed it in order. */
  get broken(): boolean {
    return this.#socket?.errored != null;
  }
}

function openSocket({ hostname, port, protocol, servername }: buildConnector.Options, lookup: LookupFunction): Socket {
  const secure = protocol === 'https:';
  const address = { host: hostname, port: Number(port || (secure ? 443 : 80)), noDelay: true, lookup };
  if (!secure) return connect(address);
  return connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...(servername ? { servername } : {}) });
}

/** A handler that needs its socket: the library tells neither reuse nor how a socket ended. */
export abstract class SocketUser {
  socket: BackendSocket | undefined;
}

/** Thrown to withdraw a request before it is written. */
const WITHDRAWN = new Error('withdrawn');

/** One connection of the pool: undici's client, which gives each handler its socket. */
export class Connection extends Client {
  readonly #socket: BackendSocket;
  #idleTimer: NodeJS.Timeout | undefined;
  #idleSince = 0;

  /** `resolve` looks names up. `reuse`: false closes the socket behind each exchange. */
  constructor(origin: string | URL, resolve?: LookupFunction, reuse = true) {
    const socket = new BackendSocket(resolve);
    super(origin, {
      connect: (options, callback) => socket.open(options, callback),
      // The exchange bounds time and size, in total and exactly; the library's timers measure
      // inactivity.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: HELD_SOCKET_MS,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      pipelining: reuse ? 1 : 0,
      allowH2: false,
    });
    this.#socket = socket;
  }

  /** Whether its socket is open. */
  get live(): boolean {
    return this.#socket.live;
  }

  /**
   * Whether its socket was used so long ago that the backend may be closing it (a few seconds are
   * usual): the gateway could not know whether a request on it arrived.
   */
  get stale(): boolean {
    return this.#socket.used && performance.now() - this.#idleSince > STALE_MS;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof SocketUser) handler.socket = this.#socket;
    return super.dispatch(options, handler);
  }

  /**
   * Opens the socket unless it is open: the library connects for a request that is withdrawn before
   * its first byte.
   * @throws why it could not be opened
   */
  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      const withdrawn: Dispatcher.DispatchHandler = {
        onRequestStart() {
          throw WITHDRAWN;
        },
        onResponseError: (_, error) => (error === WITHDRAWN ? resolve() : reject(error)),
        onResponseStart: () => {},
        onResponseData: () => {},
        onResponseEnd: () => {},
      };
      super.dispatch({ method: 'GET', path: '/' }, withdrawn);
    });
  }

  /** Closes the socket: the next request opens a new one. */
  drop(): void {
    this.#socket.drop();
  }

  /** Notes that no caller needs it: its idle socket is closed unless `inUse` is called in time. */
  idle(): void {
    this.#idleSince = performance.now();
    this.#idleTimer = setTimeout(() => this.drop(), IDLE_SOCKET_MS);
    this.#idleTimer.unref();
  }

  inUse(): void {
    clearTimeout(this.#idleTimer);
  }
}

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
 * The connections to one backend. The one in use last is used next, because its socket is
 * the likeliest to be open. A taker has a place in a limiter of the same size, and gives the
 * connection back before it leaves the place.
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
    // A connection whose last request was given up may still be connecting or closing, and the next
    // request would wait for that.
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

  /** Waits for running requests, and closes the sockets. */
  async close(): Promise<void> {
    await Promise.all(this.#emptied().map((connection) => connection.close()));
  }

  /** Ends running requests and closes the sockets; later `take` makes new connections. */
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
