/** Passes WebSockets to the backend: guards of the handshake, and the end of the two connections. */

import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '../errors.ts';
import { answerOnSocket } from '../server/http/bare-socket.ts';
import { hasBody, relayedFramingRefused } from '../server/http/framing.ts';
import { singleHeader } from '../server/http/headers.ts';
import { requestIdFor } from '../server/http/request-id.ts';
import { backendError, busy, type RelayParts } from './exchange.ts';
import { cleanRequestHeaders, cleanResponseHeaders, unusableAnswer } from './headers.ts';
import { bytesMoved } from './idle-timer.ts';
import type { ProxyListener } from './proxy.ts';
import type { RequestLine, Route } from './route.ts';

/**
 * How an upgrade ended. `closed`: the WebSocket was open; `declined`: the backend answered without
 * one.
 */
type UpgradeEnd = 'closed' | 'declined' | 'client_gone' | 'unreachable' | 'unusable' | 'timed_out' | 'busy' | 'refused';

/** Counts of how upgrades ended, none yet. */
export function noUpgradeEnds(): Record<UpgradeEnd, number> {
  return { closed: 0, declined: 0, client_gone: 0, unreachable: 0, unusable: 0, timed_out: 0, busy: 0, refused: 0 };
}

/** What is known of an upgrade that is over. */
interface EndedUpgrade {
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
  /** Counts one that runs; the result ends it. */
  readonly begin: () => () => void;
  readonly onEnd: (ended: EndedUpgrade) => void;
}

/** How long the second connection outlasts the first, milliseconds. */
const LAST_MS = 1_000;
const VERSION = '13';
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export function createUpgrades(parts: UpgradeParts) {
  const open = new Set<Upgrade>();
  const { lasting, clientOf, accepting, onEnd } = parts;
  return {
    /** Takes a connection that asks for a WebSocket. */
    handle(req: IncomingMessage, socket: Socket, head: Buffer): void {
      const since = performance.now();
      const target = req.url ?? '';
      const requestId = requestIdFor(req, 'req');
      const client = clientOf(req);
      const over = (end: UpgradeEnd, status: number | undefined): void =>
        onEnd({ end, requestId, status, ms: Math.round(performance.now() - since), target });
      socket.on('error', () => socket.destroy());
      const refused = refusalOf(req, parts.routeOf) ?? (accepting() && lasting.enter(client) ? undefined : busy());
      if (refused !== undefined) {
        answerOnSocket(socket, refused, requestId);
        over(refused.code === 'GATEWAY_BUSY' ? 'busy' : 'refused', refused.status);
        return;
      }
      const finished = parts.begin();
      const upgrade = new Upgrade(parts, req, socket, requestId);
      open.add(upgrade);
      socket.once('close', () => {
        open.delete(upgrade);
        upgrade.cut();
        lasting.leave(client);
        finished();
        over(upgrade.end ?? 'client_gone', upgrade.status);
      });
      upgrade.begin(head);
    },
    open: () => open.size,
    /** Closes those that are open, and refuses those whose handshake is on its way. */
    end(): void {
      for (const upgrade of open) upgrade.fail('busy', busy());
    },
  };
}

/** Why a request is no WebSocket that may pass; undefined: it is. */
function refusalOf(req: IncomingMessage, routeOf: (req: RequestLine) => Route): GatewayError | undefined {
  const route = routeOf(req);
  if (route.kind === 'refused') return route.error;
  if (route.kind !== 'pass') return invalid('There is no WebSocket at this path.', 'no_upgrade');
  const framing = relayedFramingRefused(req);
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

class Upgrade implements ProxyListener {
  end: UpgradeEnd | undefined;
  /** The status that the caller got. */
  status: number | undefined;
  readonly #parts: UpgradeParts;
  readonly #req: IncomingMessage;
  readonly #socket: Socket;
  readonly #requestId: string;
  #toBackend: ClientRequest | undefined;
  #backend: Socket | undefined;
  #stopWatching: (() => void) | undefined;
  #last: NodeJS.Timeout | undefined;

  constructor(parts: UpgradeParts, req: IncomingMessage, socket: Socket, requestId: string) {
    this.#parts = parts;
    this.#req = req;
    this.#socket = socket;
    this.#requestId = requestId;
  }

  begin(head: Buffer): void {
    const { proxy, factsOf, pathPrefix, idleTimeoutMs, watchIdle } = this.#parts;
    const req = this.#req;
    cleanRequestHeaders(req, factsOf(req, this.#requestId), true);
    req.url = pathPrefix + req.url;
    this.#stopWatching = watchIdle(
      () => this.#moved(),
      () => this.fail('timed_out', new GatewayError('BACKEND_TIMEOUT', { details: { timeoutMs: idleTimeoutMs } })),
    );
    proxy.upgrade(req, this.#socket, head, this);
  }

  /** Bytes so far. Before the answer neither the caller's count nor those of interim answers. */
  #moved(): number {
    if (this.#backend !== undefined) return bytesMoved(this.#socket, this.#backend);
    return this.status === undefined ? 0 : bytesMoved(this.#toBackend?.socket);
  }

  connected(toBackend: ClientRequest): void {
    this.#toBackend = toBackend;
    // Before the listener of the proxy, which relays no answer to a socket that has one.
    toBackend.once('response', (answer: IncomingMessage) => this.#declined(answer));
    // The proxy relays every 101, and adds its listener in this turn: it is called behind the check.
    process.nextTick(() => {
      const relays = toBackend.listeners('upgrade');
      toBackend.removeAllListeners('upgrade').once('upgrade', (answer: IncomingMessage, backend: Socket, head) => {
        if (this.#accepts(answer, backend)) for (const relay of relays) relay.call(toBackend, answer, backend, head);
      });
    });
  }

  failed(cause: unknown): void {
    this.fail('unreachable', new GatewayError('BACKEND_ERROR', { cause }));
  }

  /** The backend answered without a WebSocket. The proxy relays that and ends the connection. */
  #declined(answer: IncomingMessage): void {
    const unusable = unusableAnswer(answer);
    if (unusable !== undefined) {
      this.#unusable(answer, unusable);
      return;
    }
    this.#relay(answer, 'declined', {});
    answer.once('close', () => this.#endSoon());
  }

  /** Pairs the two connections: when one of them ends, so does the other. */
  #accepts(answer: IncomingMessage, backend: Socket): boolean {
    const { headers } = answer;
    const accept = createHash('sha1')
      .update(`${this.#req.headers['sec-websocket-key']}${ACCEPT_GUID}`)
      .digest('base64');
    backend.on('error', () => backend.destroy());
    this.#backend = backend;
    if (this.#socket.destroyed) this.cut();
    if (headers.upgrade?.toLowerCase() !== 'websocket' || headers['sec-websocket-accept'] !== accept) {
      this.#unusable(answer, 'backend_upgrade');
      return false;
    }
    this.#relay(answer, 'closed', { connection: 'Upgrade', upgrade: 'websocket' });
    delete answer.headers['content-length'];
    for (const side of [this.#socket, backend])
      side.once('end', () => this.#endSoon()).once('close', () => this.#endSoon());
    return true;
  }

  #relay(answer: IncomingMessage, end: UpgradeEnd, added: Readonly<Record<string, string>>): void {
    cleanResponseHeaders(answer, this.#parts.publicUrl);
    Object.assign(answer.headers, added, { 'x-request-id': this.#requestId });
    this.end = end;
    this.status = answer.statusCode;
  }

  #unusable(answer: IncomingMessage, reason: string): void {
    answer.on('error', () => undefined);
    this.fail('unusable', backendError(reason, answer.statusCode));
  }

  /** Answers with an error, or cuts what is open. */
  fail(end: UpgradeEnd, error: GatewayError): void {
    const known = this.end !== undefined;
    if (!known || end === 'timed_out') this.end = end;
    if (known || !this.#socket.writable) {
      this.cut();
      return;
    }
    this.status = error.status;
    this.#toBackend?.destroy();
    this.#backend?.destroy();
    answerOnSocket(this.#socket, error, this.#requestId);
  }

  #endSoon(): void {
    this.#last ??= setTimeout(() => this.cut(), LAST_MS).unref();
  }

  /** Ends both connections. */
  cut(): void {
    clearTimeout(this.#last);
    this.#stopWatching?.();
    this.#socket.destroy();
    this.#backend?.destroy();
    this.#toBackend?.destroy();
  }
}
