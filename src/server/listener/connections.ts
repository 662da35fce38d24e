/** Ends connections in order: after last answers, unread bodies, invalid bytes and CONNECT. */

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { GatewayError } from '../../errors.ts';
import type { Standstill } from '../../time/stand-still.ts';
import { answerOnSocket, LINGER_MS } from '../http/bare-socket.ts';
import { hasBody } from '../http/framing.ts';
import { isBodyRelayed } from '../http/relayed-body.ts';
import { connectionOf } from './connection.ts';
import type { CutReason } from './room.ts';

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
export function leaveInOrder(app: Express, closing: () => boolean): void {
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
      // Node gives the pieces of a turn to the socket at its end.
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

/** This is the last answer of its connection. */
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
    // After a standstill Node's timers end before it reads what came in time: the delay is the
    // gateway's, and the same request may succeed.
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
    // The rest of the request may still come, and what was refused must not be served.
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
