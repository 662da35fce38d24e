/** Passes WebSockets to the backend: the handshake, the two connections of each, and their end. */

import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '../errors.ts';
import { answerOnSocket } from '../server/http/bare-socket.ts';
import { hasBody, relayedFramingRefused } from '../server/http/framing.ts';
import { singleHeader } from '../server/http/headers.ts';
import { requestIdFor } from '../server/http/request-id.ts';
import { backendError, busy, type RelayParts } from './exchange.ts';
import { hostRefused } from './host.ts';
import { bytesMoved } from './idle-timer.ts';
import type { ProxyListener } from './proxy.ts';
import { cleanRequestHeaders, type ForwardedFacts } from './request-headers.ts';
import { cleanResponseHeaders, unusableAnswer } from './response-headers.ts';
import type { RequestLine, Route } from './route.ts';
import { FrameTracker } from './websocket-frames.ts';

/**
 * How an upgrade ended. `closed`: the WebSocket was open; `declined`: the backend answered without
 * one.
 */
export const UPGRADE_ENDS = [
  ...['closed', 'declined', 'client_gone', 'unreachable', 'unusable', 'timed_out', 'busy', 'refused'],
] as const satisfies readonly string[];
export type UpgradeEnd = (typeof UPGRADE_ENDS)[number];

/** What is known of an upgrade that is over. */
export interface EndedUpgrade {
  readonly end: UpgradeEnd;
  readonly requestId: string;
  /** The status that the caller got; undefined: none. */
  readonly status: number | undefined;
  readonly ms: number;
  /** As it came. */
  readonly target: string;
}

interface UpgradeParts extends RelayParts {
  readonly routeOf: (req: RequestLine) => Route;
  readonly factsOf: (req: IncomingMessage, requestId: string) => ForwardedFacts;
  /** Whether new ones are taken. */
  readonly accepting: () => boolean;
  /** Counts one that runs; the result ends it. */
  readonly begin: () => () => void;
  readonly onEnd: (ended: EndedUpgrade) => void;
}

/** How long the second connection outlasts the first, and a WebSocket its close frame, ms. */
const LAST_MS = 1_000;
const VERSION = '13';
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Close frames with 1001, going away; those of a client are masked, here with zeros. */
const CLOSE_TO_CALLER = Buffer.from([0x88, 0x02, 0x03, 0xe9]);
const CLOSE_TO_BACKEND = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]);

export function createUpgrades(parts: UpgradeParts) {
  const open = new Set<Upgrade>();
  let closed = false;
  const { lasting, clientOf } = parts;
  const enters = (client: string): boolean => !closed && parts.accepting() && lasting.enter(client);
  return {
    /** Takes a connection that asks for a WebSocket. */
    handle(req: IncomingMessage, socket: Socket, head: Buffer): void {
      const requestId = requestIdFor(req, 'req');
      const client = clientOf(req);
      const refused = refusalOf(req, parts.routeOf) ?? (enters(client) ? undefined : busy());
      if (refused === undefined) {
        const upgrade = new Upgrade(parts, { req, socket, requestId }, () => {
          open.delete(upgrade);
          lasting.leave(client);
        });
        open.add(upgrade);
        upgrade.begin(head);
        return;
      }
      socket.on('error', () => socket.destroy());
      answerOnSocket(socket, refused, requestId);
      const end = refused.code === 'GATEWAY_BUSY' ? 'busy' : 'refused';
      parts.onEnd({ end, requestId, status: refused.status, ms: 0, target: req.url ?? '' });
    },
    open: () => open.size,
    /** Ends all with 1001. */
    drain(): void {
      for (const upgrade of open) upgrade.goAway();
    },
    /** Cuts what is still open, and takes no more. */
    close(): void {
      closed = true;
      for (const upgrade of open) upgrade.cut();
    },
  };
}

/** Why a request is no WebSocket that may pass; undefined: it is. */
function refusalOf(req: IncomingMessage, routeOf: (req: RequestLine) => Route): GatewayError | undefined {
  const route = routeOf(req);
  if (route.kind === 'refused') return route.error;
  if (route.kind !== 'pass') return invalid('There is no WebSocket at this path.', 'no_upgrade');
  const framing = relayedFramingRefused(req) ?? hostRefused(req);
  if (framing !== undefined) return framing;
  if (hasBody(req.headers)) return invalid('An upgrade has no body.', 'unexpected_body');
  if (!KEY.test(singleHeader(req, 'sec-websocket-key') ?? '') || singleHeader(req, 'sec-websocket-version') !== VERSION)
    return new GatewayError('INPUT_INVALID', {
      message: `A WebSocket needs one Sec-WebSocket-Key of 16 bytes and Sec-WebSocket-Version: ${VERSION}.`,
      details: { reason: 'websocket_handshake' },
      headers: { 'sec-websocket-version': VERSION },
    });
  return undefined;
}

function invalid(message: string, reason: string): GatewayError {
  return new GatewayError('INPUT_INVALID', { message, details: { reason } });
}

interface Asked {
  readonly req: IncomingMessage;
  readonly socket: Socket;
  readonly requestId: string;
}

class Upgrade implements ProxyListener {
  readonly #parts: UpgradeParts;
  readonly #asked: Asked;
  readonly #key: string;
  readonly #target: string;
  readonly #since = performance.now();
  readonly #finished: () => void;
  #toBackend: ClientRequest | undefined;
  #backend: Socket | undefined;
  #stopWatching: (() => void) | undefined;
  #last: NodeJS.Timeout | undefined;
  #goingAway = false;
  readonly #fromCaller = new FrameTracker();
  readonly #fromBackend = new FrameTracker();
  #end: UpgradeEnd | undefined;
  #status: number | undefined;

  constructor(parts: UpgradeParts, asked: Asked, onOver: () => void) {
    this.#parts = parts;
    this.#asked = asked;
    this.#key = String(asked.req.headers['sec-websocket-key']);
    this.#target = asked.req.url ?? '';
    const end = parts.begin();
    this.#finished = () => {
      onOver();
      end();
    };
  }

  begin(head: Buffer): void {
    const { proxy, factsOf, pathPrefix, idleTimeoutMs, watchIdle } = this.#parts;
    const { req, socket, requestId } = this.#asked;
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#over());
    cleanRequestHeaders(req, factsOf(req, requestId), true);
    req.url = pathPrefix + req.url;
    this.#stopWatching = watchIdle(
      () => this.#moved(),
      () => this.#fail('timed_out', new GatewayError('BACKEND_TIMEOUT', { details: { timeoutMs: idleTimeoutMs } })),
    );
    proxy.upgrade(req, socket, head, this);
  }

  /** Bytes so far. Before the answer neither the caller's count nor those of interim answers. */
  #moved(): number {
    if (this.#backend !== undefined) return bytesMoved(this.#asked.socket, this.#backend);
    return this.#status === undefined ? 0 : bytesMoved(this.#toBackend?.socket);
  }

  connected(toBackend: ClientRequest): void {
    this.#toBackend = toBackend;
    intercept(toBackend, 'response', (answer: IncomingMessage) => this.#declined(answer));
    intercept(toBackend, 'upgrade', (answer: IncomingMessage, backend: Socket) => this.#accepted(answer, backend));
  }

  failed(cause: unknown): void {
    this.#fail('unreachable', new GatewayError('BACKEND_ERROR', { cause }));
  }

  /** The backend answered without a WebSocket. The proxy relays that and ends the connection. */
  #declined(answer: IncomingMessage): boolean {
    const unusable = unusableAnswer(answer);
    if (unusable !== undefined) return this.#unusable(answer, unusable);
    this.#clean(answer, {});
    this.#end = 'declined';
    this.#status = answer.statusCode;
    answer.once('close', () => this.#endSoon());
    return true;
  }

  #accepted(answer: IncomingMessage, backend: Socket): boolean {
    backend.on('error', () => backend.destroy());
    const { headers } = answer;
    if (headers.upgrade?.toLowerCase() !== 'websocket' || headers['sec-websocket-accept'] !== acceptOf(this.#key)) {
      backend.destroy();
      return this.#unusable(answer, 'backend_upgrade');
    }
    this.#clean(answer, { connection: 'Upgrade', upgrade: 'websocket' });
    delete answer.headers['content-length'];
    this.#end = 'closed';
    this.#status = answer.statusCode;
    this.#pair(backend);
    return true;
  }

  #clean(answer: IncomingMessage, added: Readonly<Record<string, string>>): void {
    cleanResponseHeaders(answer, this.#parts.publicUrl);
    Object.assign(answer.headers, added, { 'x-request-id': this.#asked.requestId });
  }

  #unusable(answer: IncomingMessage, reason: string): false {
    answer.on('error', () => undefined);
    answer.destroy();
    this.#fail('unusable', backendError(reason, answer.statusCode));
    return false;
  }

  /** When one of the two connections ends, so does the other. */
  #pair(backend: Socket): void {
    const { socket } = this.#asked;
    this.#backend = backend;
    // A listener in this turn would take what came with the 101, before the proxy pipes it.
    process.nextTick(() => {
      socket.on('data', this.#followCaller);
      backend.on('data', this.#followBackend);
    });
    for (const side of [socket, backend]) side.once('end', () => this.#endSoon()).once('close', () => this.#endSoon());
    if (socket.destroyed) backend.destroy();
    // The proxy writes the 101 and begins to pipe first.
    if (this.#goingAway) setImmediate(() => this.#sayGoodbye(backend));
  }

  readonly #followCaller = (piece: Buffer): void => this.#fromCaller.follow(piece);
  readonly #followBackend = (piece: Buffer): void => this.#fromBackend.follow(piece);

  /** Ends the WebSocket with 1001, or the handshake once it is done. */
  goAway(): void {
    if (this.#goingAway) return;
    this.#goingAway = true;
    if (this.#backend !== undefined) this.#sayGoodbye(this.#backend);
  }

  #sayGoodbye(backend: Socket): void {
    const { socket } = this.#asked;
    socket.off('data', this.#followCaller);
    backend.off('data', this.#followBackend);
    endAtBoundary(backend, socket, this.#fromBackend, CLOSE_TO_CALLER);
    endAtBoundary(socket, backend, this.#fromCaller, CLOSE_TO_BACKEND);
    this.#endSoon();
  }

  #fail(end: UpgradeEnd, error: GatewayError): void {
    const { socket, requestId } = this.#asked;
    this.#toBackend?.destroy();
    if (this.#end === undefined && socket.writable) {
      this.#end = end;
      this.#status = error.status;
      answerOnSocket(socket, error, requestId);
      return;
    }
    if (this.#end === undefined || end === 'timed_out') this.#end = end;
    this.cut();
  }

  #endSoon(): void {
    this.#last ??= setTimeout(() => this.cut(), LAST_MS).unref();
  }

  cut(): void {
    this.#asked.socket.destroy();
    this.#backend?.destroy();
    this.#toBackend?.destroy();
  }

  /** The caller's connection is gone, and with it the other one. */
  #over(): void {
    const { requestId } = this.#asked;
    clearTimeout(this.#last);
    this.#stopWatching?.();
    this.cut();
    this.#finished();
    const ms = Math.round(performance.now() - this.#since);
    const end = this.#end ?? 'client_gone';
    this.#parts.onEnd({ end, requestId, status: this.#status, ms, target: this.#target });
  }
}

function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + ACCEPT_GUID)
    .digest('base64');
}

/**
 * Lets the listeners of an event, which the proxy adds in this turn, be called only where `may`
 * says so: they would relay what must not pass.
 */
function intercept<Args extends readonly unknown[]>(
  request: ClientRequest,
  event: 'response' | 'upgrade',
  may: (...args: Args) => boolean,
): void {
  process.nextTick(() => {
    const listeners = request.listeners(event);
    request.removeAllListeners(event);
    request.once(event, (...args: unknown[]) => {
      if (may(...(args as unknown as Args))) for (const listener of listeners) Reflect.apply(listener, request, args);
    });
  });
}

/** Relays to the end of the frame that is on its way, then a close frame and the end. */
function endAtBoundary(from: Socket, to: Socket, tracker: FrameTracker, closeFrame: Buffer): void {
  from.unpipe(to);
  const finish = (): void => {
    if (to.writable) to.end(closeFrame);
    // What comes now is not relayed, but the end of it must be seen.
    from.resume();
  };
  if (tracker.atBoundary) {
    finish();
    return;
  }
  const relayRest = (piece: Buffer): void => {
    const rest = piece.subarray(0, tracker.followToBoundary(piece));
    if (to.writable && !to.write(rest)) {
      from.pause();
      to.once('drain', () => from.resume());
    }
    if (!tracker.atBoundary) return;
    from.off('data', relayRest);
    finish();
  };
  from.on('data', relayRest);
  from.resume();
}
