import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { errorEnvelope, GatewayError } from '../../errors.ts';
import type { Standstill } from '../../time/stand-still.ts';
import { hasBody } from '../http/framing.ts';

/**
 * How long a connection may stay open behind its last answer, for the rest of an upload or a caller
 * who does not close, milliseconds.
 */
const LINGER_MS = 1_000;

/**
 * Node's clock of a whole request, and the one between two looks at it, milliseconds: a standstill
 * within them may be why it ran out.
 */
const REQUEST_MS = 32_000;

const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';
const TOO_LARGE = 'headers_too_large';
/** Why Node's parser gave up, in the words of `details.reason`. */
const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: TOO_LARGE,
  [TIMED_OUT]: 'request_timeout',
};

/** Told of requests that never became one. */
export type RefusalListener = (refusal: GatewayError, requestId: string) => void;

/**
 * Makes every answer of an app leave its connection in order: `Connection: close` while the process
 * drains, and when the request's body was not read to its end, because its rest would be taken for
 * the next request. Decided when the head is written, and only for the last answer of a connection:
 * what was asked behind another call is answered too.
 */
export function leaveInOrder(app: Express, connections: Connections, closing: () => boolean): void {
  const { writeHead } = http.ServerResponse.prototype;
  Object.defineProperty(app.response, 'writeHead', {
    value: function writeHeadInOrder(this: http.ServerResponse, ...head: Parameters<typeof writeHead>) {
      const unread = bodyUnread(this.req);
      if (unread || (closing() && connections.isLast(this))) this.shouldKeepAlive = false;
      if (unread) abandon(this);
      if (!this.shouldKeepAlive) connections.ends(this);
      return writeHead.apply(this, head);
    },
  });
}

function bodyUnread(req: http.IncomingMessage): boolean {
  return !req.complete && hasBody(req.headers);
}

/**
 * Reads no more, and gives the answer a moment to arrive: Node would destroy the socket with the
 * last byte, and a socket that is closed over unread bytes takes back what it has sent.
 */
function abandon(res: http.ServerResponse): void {
  const { req } = res;
  const { socket } = req;
  // Node drains what nobody has begun to read.
  req.read(0);
  req.pause();
  // The request alone would let its own buffer fill first.
  socket.pause();
  socket.destroySoon = () => socket.end();
  res.once('finish', () => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** What is going on on each connection, so that a fault of its bytes reaches the right answer. */
export class Connections {
  readonly #running = new WeakMap<Duplex, Set<http.ServerResponse>>();
  readonly #faulty = new WeakSet<Duplex>();
  readonly #ending = new WeakSet<Duplex>();
  readonly #onRefused: RefusalListener;
  readonly #standstill: Pick<Standstill, 'within'>;

  constructor(onRefused: RefusalListener, standstill: Pick<Standstill, 'within'>) {
    this.#onRefused = onRefused;
    this.#standstill = standstill;
  }

  /**
   * Notes a request that is to be answered. False: the last answer of its connection is said
   * already, and what stands behind it must not be done (RFC 9112, 9.6), because nobody would hear
   * of it.
   */
  began(req: http.IncomingMessage, res: http.ServerResponse): boolean {
    if (this.#ending.has(req.socket)) return false;
    const known = this.#running.get(req.socket);
    const running = known ?? new Set();
    if (known === undefined) this.#running.set(req.socket, running);
    running.add(res);
    res.once('close', () => running.delete(res));
    return true;
  }

  /** Notes that this is the last answer of its connection. */
  ends(res: http.ServerResponse): void {
    this.#ending.add(res.req.socket);
  }

  /** Whether no other answer follows on the same connection. */
  isLast(res: http.ServerResponse): boolean {
    const running = this.#running.get(res.req.socket);
    return running === undefined || [...running].at(-1) === res;
  }

  /**
   * Bytes that no parser can read. Behind running answers they spoil nothing: those are finished,
   * and the connection ends. A request whose own body is broken is told so by its reader, under its
   * own id. Only where nothing runs is there something to say here.
   */
  fault(error: NodeJS.ErrnoException, socket: Duplex): void {
    const running = [...(this.#running.get(socket) ?? [])];
    // Node finds its timers due before it has read what came in time: that is our delay, and the
    // same request may succeed.
    const late = error.code === TIMED_OUT && this.#standstill.within(REQUEST_MS) ? stoodStill(error) : undefined;
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
   * A CONNECT. Node has let go of its connection: nobody hears its errors, of which an unheard one
   * ends the process, and answers that are on their way there are told neither of room for more nor
   * that the caller left. So they end here, or they would count as running for ever.
   */
  tunnel({ socket }: http.IncomingMessage, tunnel: Duplex): void {
    for (const end of [socket, tunnel]) end.on('error', () => socket.destroy());
    const running = this.#running.get(socket) ?? new Set();
    if (running.size === 0) {
      this.refuse(socket, 'no_tunnel');
      return;
    }
    socket.destroy();
    for (const res of running) res.destroy();
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
    // The rest of it may be on its way already, and what was refused must not be done.
    this.#ending.add(socket);
    this.#onRefused(refusal, requestId);
    const body = JSON.stringify(errorEnvelope(refusal, requestId));
    const head = [
      `HTTP/1.1 ${refusal.status} ${http.STATUS_CODES[refusal.status]}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      ...Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`),
      'cache-control: no-store',
      'connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
    // Nobody else watches over a connection whose parser gave up or was taken away.
    const lingers = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(lingers));
  }
}

function stoodStill(cause: Error): GatewayError {
  return new GatewayError('GATEWAY_BUSY', {
    message: 'The gateway stood still while this request came in. Send it again.',
    headers: { 'retry-after': '1' },
    cause,
  });
}
