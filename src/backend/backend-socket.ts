import { connect, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type buildConnector, Client, type Dispatcher } from 'undici';
import { allowedAddresses } from './forbidden-addresses.ts';

/** How long a connection to the merchant may take, milliseconds (contract 3). */
export const CONNECT_TIMEOUT_MS = 2_000;
/** Largest header block of an answer, bytes of names and values. */
const MAX_ANSWER_HEADER_BYTES = 16_384;
/**
 * How long a socket is kept for reuse when the merchant gives no `Keep-Alive: timeout=` hint,
 * milliseconds.
 */
const IDLE_SOCKET_MS = 4_000;
/**
 * A socket that was used longer ago carries nothing that is paid, milliseconds: less than any usual
 * merchant keeps one.
 */
const STALE_MS = 1_000;
/**
 * The library closes a socket on which nothing runs after this, milliseconds: longer than a
 * settlement, through which one is held.
 */
const HELD_SOCKET_MS = 70_000;

/** Nobody accepted a connection in time. */
export class ConnectLate extends Error {
  constructor() {
    super('connect deadline passed');
    this.name = 'ConnectLate';
  }
}

/** What an exchange may know of the socket it travels on. */
export class BackendSocket {
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
    const refuse = (error: Error): void => {
      clearTimeout(deadline);
      callback(error, null);
    };
    const deadline = setTimeout(() => socket.destroy(new ConnectLate()), CONNECT_TIMEOUT_MS);
    socket.once('error', refuse);
    socket.once(options.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      clearTimeout(deadline);
      socket.off('error', refuse);
      this.#socket = socket;
      this.#exchanges = 0;
      callback(null, socket);
    });
  }

  /**
   * Counts an exchange that is about to be written. True when the socket served another one before.
   */
  begin(): boolean {
    this.#exchanges += 1;
    return this.#exchanges > 1;
  }

  /** The socket is open, for all that is known in this turn of the event loop. */
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

  /** The socket ended by an error, not by the merchant closing it in order. */
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

/**
 * Something the pool carries that wants to know its wire: the library tells neither reuse nor how a
 * socket ended.
 */
export abstract class SocketUser {
  wire: BackendSocket | undefined;
}

/** Thrown to withdraw a request before it is written. */
const WITHDRAWN = new Error('withdrawn');

/**
 * One connection of the pool: undici's client, telling its passengers which wire they travel on.
 */
export class Connection extends Client {
  readonly #wire: BackendSocket;
  #idle: NodeJS.Timeout | undefined;
  #restsSince = 0;

  /** `reuse`: false closes the socket behind each exchange. */
  constructor(origin: string | URL, wire: BackendSocket = new BackendSocket(), reuse = true) {
    super(origin, {
      connect: (options, callback) => wire.open(options, callback),
      // Time and size are bounded by the hop, in total and exactly; the library's timers measure
      // inactivity.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: HELD_SOCKET_MS,
      maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      pipelining: reuse ? 1 : 0,
      allowH2: false,
    });
    this.#wire = wire;
  }

  /** Whether its socket is open. */
  get live(): boolean {
    return this.#wire.live;
  }

  /**
   * Whether its socket was used, and so long ago that the merchant may be about to close it: a few
   * seconds are usual, and a request that meets the end of a connection may or may not have
   * arrived.
   */
  get stale(): boolean {
    return this.#wire.used && performance.now() - this.#restsSince > STALE_MS;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof SocketUser) handler.wire = this.#wire;
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

  /** Closes the socket: the next request travels on a new one. */
  drop(): void {
    this.#wire.drop();
  }

  /** Nothing needs it now: its socket is closed unless `busy` is called in time. */
  rest(): void {
    this.#restsSince = performance.now();
    this.#idle = setTimeout(() => this.drop(), IDLE_SOCKET_MS);
    this.#idle.unref();
  }

  busy(): void {
    clearTimeout(this.#idle);
  }
}
