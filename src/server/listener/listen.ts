/**
 * The listeners of a process: HTTP servers with their limits, in front of the Express apps. Ends
 * connections in order: after last answers, unread bodies, invalid bytes and CONNECT.
 */

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express, Request } from 'express';
import { GatewayError } from '../../errors.ts';
import { Standstill } from '../../time/time.ts';
import { hasBody, isBodyRelayed, originForm } from '../http/request.ts';
import { answerOnSocket, LINGER_MS, listenOn } from '../http/respond.ts';
import type { LoadShedder } from '../limits/load-shedder.ts';
import { type CutReason, connectionOf, Room } from './connection.ts';

/** Socket bounds of contract 3. Two proofs of 8 KiB must fit into the head. */
const LIMITS = {
  maxHeaderSize: 32_768,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
  // Bytes that wait on a connection in each direction, with one piece that goes beyond them.
  highWaterMark: 16_384,
  // Node's own refusal of a request without Host has no envelope; that of `checkFraming` has one.
  requireHostHeader: false,
} as const;
/**
 * A connection on which no byte moves for so long is closed, milliseconds: a client that never
 * reads would keep it for ever. Longer than a call may be silent: its verification, settlement and
 * backend have deadlines of 5, 60 and 120 s.
 */
export const SILENT_MS = 300_000;
/** Most connections of a listener. */
export const MAX_CONNECTIONS = 4_096;

/** Connections for so many calls at a time: one for each, and one for each caller between calls. */
export function connectionsFor(maxInFlight: number): number {
  return Math.max(MAX_CONNECTIONS, 2 * maxInFlight);
}

/** A listener with its address once it listens. */
export interface Listener {
  readonly server: http.Server;
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Stops accepting and closes idle connections; running requests finish. May listen again. */
  stop(): void;
  /** Ends all open connections. */
  disconnect(): void;
  /** Stops, and ends all open connections. */
  destroy(): void;
}

/** The parts of a listener that depend on the relay of requests. */
export interface RelayParts {
  /** How long a relayed exchange may be silent, milliseconds: its relay ends it. */
  readonly idleTimeoutMs: number;
  /** Takes the connections of WebSockets; undefined: their requests are requests like others. */
  readonly upgrade: ((req: http.IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
}

export interface ListenerParts {
  readonly app: Express;
  /** Whether connections end with their answer; read when a head is written. */
  readonly closing?: () => boolean;
  readonly onRefused: RefusalListener;
  /** Decides before Express which requests go on, wait or are refused. */
  readonly loadShedder?: LoadShedder;
  /** Most connections, and whether clients are told apart by their addresses; asked for each. */
  readonly maxConnections?: () => number;
  readonly sharesClients?: () => boolean;
  readonly silentMs?: number;
  /** Present if requests are relayed: their bodies may take longer than bodies read here. */
  readonly relay?: RelayParts | undefined;
  /** How long a body may take that is read here, milliseconds. */
  readonly requestTimeout?: number;
  /** How long the head of a request may take, and how often that is checked, milliseconds. */
  readonly headersTimeout?: number;
  readonly connectionsCheckingInterval?: number;
}

/**
 * Creates the HTTP server of an Express app. Its requests and responses are created with Express's
 * own prototypes: Express would otherwise change those of every request, which is slow.
 */
export function createListener(parts: ListenerParts): Listener {
  const { app, closing = () => false, onRefused, loadShedder = () => 'goes_on', relay } = parts;
  const { requestTimeout = LIMITS.requestTimeout, silentMs = SILENT_MS } = parts;
  const standstill = new Standstill();
  const faults = new Faults(onRefused, standstill);
  const { maxConnections = () => MAX_CONNECTIONS, sharesClients = () => true } = parts;
  const room = new Room({ most: maxConnections, sharesClients, onCut: (reason) => faults.cut(reason) });
  leaveInOrder(app, closing);
  const answer: http.RequestListener = (req, res) => {
    useOriginForm(req);
    if (relay !== undefined && hasBody(req.headers)) boundBody(req, requestTimeout, faults);
    const connection = connectionOf(req.socket);
    if (connection !== undefined) {
      connection.began(res);
      room.used(connection);
    }
    if (loadShedder(req, res, app) === 'goes_on') app(req, res);
  };
  const server = http.createServer(
    {
      ...LIMITS,
      // Node would end relayed uploads as well; `boundBody` ends the others in the same way.
      requestTimeout: relay === undefined ? requestTimeout : 0,
      // Other protocols (h2c) are not spoken: their requests are answered in HTTP/1.1.
      ...(relay?.upgrade === undefined ? {} : { shouldUpgradeCallback: asksForWebSocket }),
      ...(parts.headersTimeout === undefined ? {} : { headersTimeout: parts.headersTimeout }),
      ...(parts.connectionsCheckingInterval === undefined
        ? {}
        : { connectionsCheckingInterval: parts.connectionsCheckingInterval }),
      IncomingMessage: withPrototype<typeof http.IncomingMessage>(http.IncomingMessage, app.request),
      ServerResponse: withPrototype<typeof http.ServerResponse>(http.ServerResponse, app.response),
    },
    answer,
  );
  // Node passes on all header fields, and `checkFraming` counts them; `LIMITS` bounds their size.
  server.maxHeadersCount = 0;
  server.timeout = relay === undefined ? silentMs : Math.max(silentMs, 2 * relay.idleTimeoutMs);
  // The body reader decides when to invite the body, so an unwanted one is never sent.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  // Behind Node's own listener, which makes the parser of the connection.
  server.on('connection', (socket) => room.enter(socket));
  server.on('clientError', (error, socket) => faults.fault(error, socket));
  server.on('connect', (req, tunnel) => faults.tunnel(req, tunnel));
  const upgrade = relay?.upgrade;
  if (upgrade !== undefined)
    server.on('upgrade', (req, socket, head) => {
      useOriginForm(req);
      socket.on('error', () => socket.destroy());
      connectionOf(req.socket)?.upgraded();
      upgrade(req, socket, head);
    });
  return {
    server,
    listen: (host, port) => listenOn(server, { host, port }),
    stop() {
      server.close();
      server.closeIdleConnections();
    },
    disconnect: () => server.closeAllConnections(),
    destroy() {
      standstill.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Ends a body that takes too long, unless it is relayed. */
function boundBody(req: http.IncomingMessage, requestTimeout: number, faults: Faults): void {
  const timer = setTimeout(() => {
    if (!req.complete && !req.destroyed && !isBodyRelayed(req)) faults.timeOut(req.socket);
  }, requestTimeout).unref();
  req.once('close', () => clearTimeout(timer));
}

function asksForWebSocket({ method, headers: { upgrade } }: http.IncomingMessage): boolean {
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket';
}

/**
 * Gives the target the origin form. Where Express cannot parse the origin of an absolute one, it
 * finds no path and answers with a page of its own, before any middleware. The target as it was
 * sent is `originalUrl`.
 */
function useOriginForm(req: http.IncomingMessage & Pick<Partial<Request>, 'originalUrl'>): void {
  const { url = '/' } = req;
  const target = originForm(url);
  if (target === url) return;
  req.originalUrl = url;
  req.url = target;
}

/** A class whose instances have `prototype`: Express changes nothing when it sets the same one. */
function withPrototype<C extends new (...given: never[]) => object>(Base: C, prototype: object): C {
  function Derived(...given: unknown[]): object {
    return Reflect.construct(Base, given, Derived);
  }
  Derived.prototype = prototype;
  Object.setPrototypeOf(Derived, Base);
  return Derived as unknown as C;
}

/** Node's timeout of a request with its interval of checks, milliseconds: both may be delayed. */
const REQUEST_MS = 32_000;

const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';
const TOO_LARGE = 'headers_too_large';
/** Why Node's parser gave up, in the words of `details.reason`. */
const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: TOO_LARGE,
  [TIMED_OUT]: 'request_timeout',
};

/** Called for bytes that never became a request, and for a connection that was closed unasked. */
export type RefusalListener = (refusal: GatewayError, requestId: string) => void;

/**
 * Lets answers end their connections in order. When its head is written, an answer gets
 * `Connection: close` if the process drains, or if the body of the request is not read to its end:
 * Node would parse the rest as the next request. A body that the gateway relays is still read after
 * that head. The listener counts the bytes of an answer that its socket still holds.
 */
function leaveInOrder(app: Express, closing: () => boolean): void {
  const { writeHead, write, end } = http.ServerResponse.prototype;
  Object.defineProperty(app.response, 'writeHead', {
    value: function writeHeadInOrder(this: http.ServerResponse, ...head: Parameters<typeof writeHead>) {
      const unread = bodyUnread(this.req);
      const relayed = isBodyRelayed(this.req);
      if ((unread && !relayed) || closing()) this.shouldKeepAlive = false;
      if (!this.shouldKeepAlive) endAfter(this, unread, relayed);
      return writeHead.apply(this, head);
    },
  });
  Object.defineProperty(app.response, 'write', {
    value: function writeCounted(this: http.ServerResponse, ...rest: Parameters<typeof write>) {
      const wantsMore = write.apply(this, rest);
      // Node gives the pieces of a turn to the socket at the end of the turn.
      if (!wantsMore) process.nextTick(countUnsent, this);
      return wantsMore;
    },
  });
  Object.defineProperty(app.response, 'end', {
    value: function endCounted(this: http.ServerResponse, ...rest: Parameters<typeof end>) {
      const ended = end.apply(this, rest);
      countUnsent(this);
      return ended;
    },
  });
}

function countUnsent({ socket }: http.ServerResponse): void {
  if (socket !== null && socket.writableLength > 0) connectionOf(socket)?.waits();
}

/** Makes an answer the last one of its connection. */
function endAfter(res: http.ServerResponse, unread: boolean, relayed: boolean): void {
  const connection = connectionOf(res.req.socket);
  if (unread && !relayed) abandon(res);
  else if (unread || connection?.isFollowed === true) linger(res);
  if (unread && !relayed) connection?.stops();
  else connection?.ends();
}

function bodyUnread(req: http.IncomingMessage): boolean {
  return !req.complete && hasBody(req.headers);
}

/**
 * Reads no more, and gives the answer time to arrive: Node would destroy the socket with the last
 * byte, and closing a socket with unread bytes discards its sent bytes.
 */
function abandon(res: http.ServerResponse): void {
  const { req } = res;
  const { socket } = req;
  // Node drains a request whose reading was not begun.
  req.read(0);
  req.pause();
  // Pausing the request alone would first fill its own buffer.
  socket.pause();
  linger(res);
}

/** Keeps the connection for a moment after its last answer, which an early close would discard. */
function linger(res: http.ServerResponse): void {
  const { socket } = res.req;
  socket.destroySoon = () => socket.end();
  res.once('finish', () => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** Tells the reader of a body that no more of it comes, also one that begins to read later. */
function failReading(req: http.IncomingMessage, error: Error): void {
  if (req.listenerCount('error') > 0) {
    req.emit('error', error);
    return;
  }
  const tell = (event: string | symbol): void => {
    if (event !== 'error') return;
    req.off('newListener', tell);
    process.nextTick(() => req.emit('error', error));
  };
  req.on('newListener', tell);
}

/** Answers bytes that are no request, and ends their connections. */
export class Faults {
  readonly #onRefused: RefusalListener;
  readonly #standstill: Pick<Standstill, 'within'>;

  constructor(onRefused: RefusalListener, standstill: Pick<Standstill, 'within'>) {
    this.#onRefused = onRefused;
    this.#standstill = standstill;
  }

  /**
   * Handles bytes that the parser cannot read. An answer that runs is finished, and the connection
   * ends. A request whose own body is broken gets its error from the body reader, under its own id.
   * Only a connection without a running answer is answered here.
   */
  fault(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = connectionOf(socket);
    const running = connection?.running;
    // After a standstill Node's timers end before it reads bytes that came in time: the delay is
    // the gateway's, and the same request may succeed.
    const late =
      error.code === TIMED_OUT && this.#standstill.within(REQUEST_MS) ? requestDuringStandstill(error) : undefined;
    if (running === undefined) {
      if (late === undefined) this.refuse(socket, REASONS[error.code ?? ''] ?? 'malformed_request', error);
      else this.#answer(socket, late);
      return;
    }
    if (connection?.drops() !== true) return;
    if (!running.headersSent) running.shouldKeepAlive = false;
    running.once('finish', () => socket.end());
    running.once('close', () => socket.destroy());
    const { req } = running;
    if (!req.complete) failReading(req, late ?? error);
    // The client has left within its next request.
    else if (socket.readableEnded) socket.end();
  }

  /** Refuses a CONNECT. Node no longer watches its connection: an error would end the process. */
  tunnel({ socket }: http.IncomingMessage, tunnel: Duplex): void {
    for (const end of [socket, tunnel]) end.on('error', () => socket.destroy());
    connectionOf(socket)?.upgraded();
    this.refuse(socket, 'no_tunnel');
  }

  /** Ends a request whose body did not come in time, as Node does where it watches bodies. */
  timeOut(socket: Duplex): void {
    this.fault(Object.assign(new Error('Request timeout'), { code: TIMED_OUT }), socket);
  }

  /** Reports a connection that was closed. */
  cut(reason: CutReason): void {
    this.#onRefused(new GatewayError('GATEWAY_BUSY', { details: { reason } }), `req_${randomUUID()}`);
  }

  /** Answers on the bare socket with the one envelope, and ends it. */
  refuse(socket: Duplex, reason: string, cause?: unknown): void {
    if (!socket.writable || (cause as { code?: unknown } | undefined)?.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const refusal = new GatewayError('INPUT_INVALID', {
      message: reason === TOO_LARGE ? 'The head of this request is too large.' : 'This is not a request we can read.',
      details: { reason },
      cause,
    });
    this.#answer(socket, refusal);
  }

  /** Writes the one envelope on the bare socket, and ends it. */
  #answer(socket: Duplex, refusal: GatewayError): void {
    const requestId = `req_${randomUUID()}`;
    // The rest of the refused request may still come, and must not be served.
    connectionOf(socket)?.stops();
    this.#onRefused(refusal, requestId);
    answerOnSocket(socket, refusal, requestId);
  }
}

function requestDuringStandstill(cause: Error): GatewayError {
  return new GatewayError('GATEWAY_BUSY', {
    message: 'The gateway stood still while this request came in. Send it again.',
    cause,
  });
}
