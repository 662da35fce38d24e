/** Passes WebSockets to the backend: guards of the handshake, and the end of both connections. */

import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '../errors.ts';
import { requestIdFor } from '../server/http/access-record.ts';
import { hasBody, relayedFramingRefused, singleHeader } from '../server/http/request.ts';
import { answerOnSocket } from '../server/http/respond.ts';
import { bytesMoved } from './admission.ts';
import { backendError, busy, type RelayParts } from './exchange.ts';
import { cleanRequestHeaders, cleanResponseHeaders, unusableAnswer } from './headers.ts';
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

/** Facts of an upgrade that is over. */
interface EndedUpgrade {
  readonly end: UpgradeEnd;
  readonly requestId: string;
  /** The status that the caller got; undefined: none. */
  readonly status: number | undefined;
  readonly ms: number;
  /** The request's target as it came. */
  readonly target: string;
}

interface UpgradeParts extends RelayParts {
  readonly routeOf: (req: RequestLine) => Route;
  /** Counts a running upgrade; the result ends the count. */
  readonly begin: () => () => void;
  readonly onEnd: (ended: EndedUpgrade) => void;
}

type Over = (end: UpgradeEnd, status: number | undefined) => void;

/** How long the second connection outlasts the first, milliseconds. */
const LAST_MS = 1_000;
const VERSION = '13';
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export function createUpgrades(parts: UpgradeParts) {
  /** The `fail` functions of the upgrades that run. */
  const open = new Set<ReturnType<typeof startUpgrade>>();
  const { lasting, clientOf, accepting, onEnd } = parts;
  return {
    /** Takes a connection that asks for a WebSocket. */
    handle(req: IncomingMessage, socket: Socket, head: Buffer): void {
      const since = performance.now();
      const target = req.url ?? '';
      const requestId = requestIdFor(req, 'req');
      const client = clientOf(req);
      const over: Over = (end, status) =>
        onEnd({ end, requestId, status, ms: Math.round(performance.now() - since), target });
      socket.on('error', () => socket.destroy());
      const refused = refusalOf(req, parts.routeOf) ?? (accepting() && lasting.take([client]) ? undefined : busy());
      if (refused !== undefined) {
        answerOnSocket(socket, refused, requestId);
        over(refused.code === 'GATEWAY_BUSY' ? 'busy' : 'refused', refused.status);
        return;
      }
      const finished = parts.begin();
      const fail = startUpgrade(parts, { req, socket, head, requestId }, (end, status) => {
        open.delete(fail);
        lasting.giveBack([client]);
        finished();
        over(end, status);
      });
      open.add(fail);
    },
    open: () => open.size,
    /** Closes open WebSockets, and refuses upgrades whose handshake is under way. */
    end(): void {
      for (const fail of open) fail('busy', busy());
    },
  };
}

/** The refusal of a request that may not pass as a WebSocket; undefined: it may. */
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

/** The parts of an upgrade that its connection gives. */
interface Asked {
  readonly req: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
  readonly requestId: string;
}

/** Asks the backend; `onOver` is called once the caller's connection is closed. */
function startUpgrade(parts: UpgradeParts, { req, socket, head, requestId }: Asked, onOver: Over) {
  const { idleTimeoutMs } = parts;
  let toBackend: ClientRequest | undefined;
  let backend: Socket | undefined;
  let end: UpgradeEnd | undefined;
  let status: number | undefined;
  let last: NodeJS.Timeout | undefined;

  /** Bytes so far: none before the answer, from the caller or of interim answers. */
  const moved = (): number => {
    if (backend !== undefined) return bytesMoved(socket, backend);
    return status === undefined ? 0 : bytesMoved(toBackend?.socket);
  };
  const stopWatching = parts.watchIdle(moved, () =>
    fail('timed_out', new GatewayError('BACKEND_TIMEOUT', { details: { timeoutMs: idleTimeoutMs } })),
  );
  const cut = (): void => {
    clearTimeout(last);
    stopWatching();
    socket.destroy();
    backend?.destroy();
    toBackend?.destroy();
  };
  const endSoon = (): void => {
    last ??= setTimeout(cut, LAST_MS).unref();
  };
  /** Answers with an error; cuts both connections if the caller got an answer before. */
  const fail = (how: UpgradeEnd, error: GatewayError): void => {
    const known = end !== undefined;
    if (!known || how === 'timed_out') end = how;
    if (known || !socket.writable) {
      cut();
      return;
    }
    status = error.status;
    toBackend?.destroy();
    backend?.destroy();
    answerOnSocket(socket, error, requestId);
  };
  const unusable = (answer: IncomingMessage, reason: string): void => {
    answer.on('error', () => undefined);
    fail('unusable', backendError(reason, answer.statusCode));
  };
  const relay = (answer: IncomingMessage, how: UpgradeEnd, added: Readonly<Record<string, string>>): void => {
    cleanResponseHeaders(answer, parts.publicUrl);
    Object.assign(answer.headers, added, { 'x-request-id': requestId });
    end = how;
    status = answer.statusCode;
  };
  /** The backend answered without a WebSocket. The proxy relays that and ends the connection. */
  const declined = (answer: IncomingMessage): void => {
    const reason = unusableAnswer(answer);
    if (reason !== undefined) {
      unusable(answer, reason);
      return;
    }
    relay(answer, 'declined', {});
    answer.once('close', endSoon);
  };
  /** Pairs the two connections: when one of them ends, so does the other. */
  const accepts = (answer: IncomingMessage, other: Socket): boolean => {
    const { upgrade, 'sec-websocket-accept': accept } = answer.headers;
    other.on('error', () => other.destroy());
    backend = other;
    if (socket.destroyed) cut();
    if (upgrade?.toLowerCase() !== 'websocket' || accept !== acceptOf(req)) {
      unusable(answer, 'backend_upgrade');
      return false;
    }
    relay(answer, 'closed', { connection: 'Upgrade', upgrade: 'websocket' });
    delete answer.headers['content-length'];
    for (const side of [socket, other]) side.once('end', endSoon).once('close', endSoon);
    return true;
  };
  socket.once('close', () => {
    cut();
    onOver(end ?? 'client_gone', status);
  });
  cleanRequestHeaders(req, parts.factsOf(req, requestId), true);
  parts.proxy.upgrade(req, socket, head, {
    connected(request) {
      toBackend = request;
      // Called before the proxy's listener, which relays no answer to a socket that was answered.
      request.once('response', declined);
      // The proxy relays every 101: its listener, added in this turn, is called behind the check.
      process.nextTick(() => {
        const listeners = request.listeners('upgrade');
        request.removeAllListeners('upgrade').once('upgrade', (answer: IncomingMessage, other: Socket, rest) => {
          if (accepts(answer, other)) for (const listener of listeners) listener.call(request, answer, other, rest);
        });
      });
    },
    failed: (cause) => fail('unreachable', new GatewayError('BACKEND_ERROR', { cause })),
  });
  return fail;
}

function acceptOf({ headers }: IncomingMessage): string {
  return createHash('sha1').update(`${headers['sec-websocket-key']}${ACCEPT_GUID}`).digest('base64');
}
