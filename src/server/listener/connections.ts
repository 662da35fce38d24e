/** Ends connections in order: after last answers, unread bodies, invalid bytes and CONNECT. */

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { GatewayError } from '../../errors.ts';
import { LinkedList } from '../../linked-list.ts';
import type { Standstill } from '../../time/stand-still.ts';
import { answerOnSocket, LINGER_MS } from '../http/bare-socket.ts';
import { hasBody } from '../http/framing.ts';
import { isBodyRelayed } from '../http/relayed-body.ts';

/** Node's timeout of a request with its interval of checks, milliseconds: both may be delayed. */
const REQUEST_MS = 32_000;

const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';
const TOO_LARGE = 'headers_too_large';
/** Why Node's parser gave up, in the words of `details.reason`. */
const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: TOO_LARGE,
  [TIMED_OUT]: 'request_timeout',
};

/** Called for bytes that never became a request. */
export type RefusalListener = (refusal: GatewayError, requestId: string) => void;

/**
 * Makes answers end their connections in order: with `Connection: close` while the process drains,
 * and when the request's body was not read to its end, because its rest would be taken for the next
 * request. It is decided when the head of the last answer of a connection is written, so pipelined
 * requests are answered too. A body that is relayed goes on beside its answer.
 */
export function leaveInOrder(app: Express, connections: Connections, closing: () => boolean): void {
  const { writeHead } = http.ServerResponse.prototype;
  Object.defineProperty(app.response, 'writeHead', {
    value: function writeHeadInOrder(this: http.ServerResponse, ...head: Parameters<typeof writeHead>) {
      const unread = bodyUnread(this.req);
      const relayed = isBodyRelayed(this.req);
      if ((unread && !relayed) || (closing() && connections.isLast(this))) this.shouldKeepAlive = false;
      if (unread && !relayed) abandon(this);
      if (unread && relayed && !this.shouldKeepAlive) linger(this);
      // A relayed answer brings a Connection of its own, which Node would obey in place of this.
      if (this.hasHeader('connection')) this.setHeader('connection', this.shouldKeepAlive ? 'keep-alive' : 'close');
      if (!this.shouldKeepAlive) connections.ends(this);
      return writeHead.apply(this, head);
    },
  });
}

function bodyUnread(req: http.IncomingMessage): boolean {
  return !req.complete && hasBody(req.headers);
}

/**
 * Reads no more, and gives the answer time to arrive: Node would destroy the socket with the last
 * byte, and closing a socket with unread bytes discards what it has sent.
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

/** The running answers of each connection, so that a fault of its bytes reaches the right one. */
export class Connections {
  readonly #running = new WeakMap<Duplex, LinkedList<http.ServerResponse>>();
  readonly #faulty = new WeakSet<Duplex>();
  readonly #ending = new WeakSet<Duplex>();
  readonly #onRefused: RefusalListener;
  readonly #standstill: Pick<Standstill, 'within'>;

  constructor(onRefused: RefusalListener, standstill: Pick<Standstill, 'within'>) {
    this.#onRefused = onRefused;
    this.#standstill = standstill;
  }

  /**
   * Notes a request that is to be answered. False: the last answer of its connection is out, and a
   * request behind it must not be served (RFC 9112, 9.6), because its answer could not be sent.
   */
  began(req: http.IncomingMessage, res: http.ServerResponse): boolean {
    if (!this.goesOn(req)) return false;
    const known = this.#running.get(req.socket);
    const running = known ?? new LinkedList();
    if (known === undefined) this.#running.set(req.socket, running);
    const place = running.add(res);
    res.once('close', () => running.remove(place));
    return true;
  }

  /** Whether a request may still be served: the last answer of its connection is not out. */
  goesOn({ socket }: http.IncomingMessage): boolean {
    return !this.#ending.has(socket);
  }

  /** Notes that this is the last answer of its connection. */
  ends(res: http.ServerResponse): void {
    this.#ending.add(res.req.socket);
  }

  /** Whether no other answer follows on the same connection. */
  isLast(res: http.ServerResponse): boolean {
    const last = this.#running.get(res.req.socket)?.last;
    return last === undefined || last.member === res;
  }

  /**
   * Handles bytes that the parser cannot read. Answers that run are finished, and the connection
   * ends. A request whose own body is broken gets its error from the body reader, under its own id.
   * Only a connection without running answers is answered here.
   */
  fault(error: NodeJS.ErrnoException, socket: Duplex): void {
    const running = this.#runningOn(socket);
    // After a standstill Node's timers end before it reads what came in time: the delay is the
    // gateway's, and the same request may succeed.
    const late =
      error.code === TIMED_OUT && this.#standstill.within(REQUEST_MS) ? requestDuringStandstill(error) : undefined;
    if (running.length === 0) {
      if (late === undefined) this.refuse(socket, REASONS[error.code ?? ''] ?? 'malformed_request', error);
      else this.#answer(socket, late);
      return;
    }
    if (this.#faulty.has(socket)) return;
    this.#faulty.add(socket);
    socket.pause();
    const last = running.at(-1);
    if (last !== undefined && !last.headersSent) last.shouldKeepAlive = false;
    last?.once('finish', () => socket.end());
    last?.once('close', () => socket.destroy());
    for (const { req } of running)
      if (!req.complete && req.listenerCount('error') > 0) req.emit('error', late ?? error);
  }

  /**
   * Handles a CONNECT. Node has detached its connection: an error without a listener would end the
   * process, and running answers learn neither of room for more nor that the caller left. So they
   * end here, or they would count as running for ever.
   */
  tunnel({ socket }: http.IncomingMessage, tunnel: Duplex): void {
    for (const end of [socket, tunnel]) end.on('error', () => socket.destroy());
    const running = this.#runningOn(socket);
    if (running.length === 0) {
      this.refuse(socket, 'no_tunnel');
      return;
    }
    socket.destroy();
    for (const res of running) res.destroy();
  }

  /**
   * Whether an upgrade may go on. Its bytes would mix with those of answers that still run, so both
   * end there; and nothing is served behind the last answer of a connection.
   */
  mayUpgrade({ socket }: http.IncomingMessage, tunnel: Duplex): boolean {
    tunnel.on('error', () => tunnel.destroy());
    const running = this.#runningOn(socket);
    if (running.length === 0 && !this.#ending.has(socket)) return true;
    socket.destroy();
    for (const res of running) res.destroy();
    return false;
  }

  #runningOn(socket: Duplex): http.ServerResponse[] {
    return [...(this.#running.get(socket) ?? [])].map(({ member }) => member);
  }

  /** Ends a request whose body did not come in time, as Node does where it watches bodies. */
  timeOut(socket: Duplex): void {
    this.fault(Object.assign(new Error('Request timeout'), { code: TIMED_OUT }), socket);
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
    // The rest of the request may still come, and what was refused must not be served.
    this.#ending.add(socket);
    this.#onRefused(refusal, requestId);
    answerOnSocket(socket, refusal, requestId);
  }
}

function requestDuringStandstill(cause: Error): GatewayError {
  return new GatewayError('GATEWAY_BUSY', {
    message: 'The gateway stood still while this request came in. Send it again.',
    headers: { 'retry-after': '1' },
    cause,
  });
}
