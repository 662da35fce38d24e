/** Passes one request to the backend and its answer back: waiting, streaming, and every failure. */

import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { GatewayError } from '../errors.ts';
import type { Places, Refusal } from '../limiter.ts';
import { onceClosed, requestIdOf } from '../server/http/access-record.ts';
import { hasBody, noteBodyRelayed, noteRelayEnded, relayedFramingRefused } from '../server/http/request.ts';
import { endWith } from '../server/http/respond.ts';
import type { ClientOf } from '../server/limits/client-address.ts';
import { type Admission, bytesMoved, bytesSent, LEAST_RATE, type Passing, type Watch } from './admission.ts';
import {
  cleanRequestHeaders,
  cleanResponseHeaders,
  copyHead,
  type ForwardedFacts,
  passedTrailers,
  passesToCaller,
  publicLinks,
  unusableAnswer,
} from './headers.ts';

/**
 * How a passed request ended. `relayed`: to its last byte; `broken`: after its head; `timed_out`:
 * no byte moved for too long; `unusable`: the backend's answer may not be relayed.
 */
type End = 'relayed' | 'broken' | 'client_gone' | 'unreachable' | 'unusable' | 'timed_out' | 'busy' | 'refused';

/** Counts of how requests ended, none yet. */
export function noEnds(): Record<End, number> {
  return { relayed: 0, broken: 0, client_gone: 0, unreachable: 0, unusable: 0, timed_out: 0, busy: 0, refused: 0 };
}

/** Takes the events of one request, or of one upgrade. */
interface ProxyListener {
  /** A connection is there: headers are not sent yet, and the body is not yet piped. */
  connected(toBackend: ClientRequest): void;
  /** The head of the answer is there: the listener relays it. Upgrades listen to `toBackend`. */
  answered?(answer: IncomingMessage): void;
  /** It failed, before or after the answer began. */
  failed(cause: unknown): void;
}

/**
 * How long a connection may stay unused, milliseconds. Below what servers use (5 s in Node, 2 s or
 * more elsewhere): a request that meets the backend's close fails, and only some may be repeated.
 */
const UNUSED_MS = 1_500;
/** Most unused connections that are kept for later requests. */
const MAX_UNUSED = 64;
/** Most listeners of one event of an answer. */
const MAX_LISTENERS = 20;

type BackendProxy = ReturnType<typeof createProxy>;

/** A proxied request with its listener and target: a WeakMap costs 50 us of garbage collection. */
interface Proxied extends IncomingMessage {
  proxied?: { readonly listener: ProxyListener; readonly target: string };
}

/**
 * The proxy itself, of http-proxy-middleware. `origin`: scheme, host and port of the backend.
 * `pathPrefix`: the path of its base URL, without a trailing slash.
 */
export function createProxy(origin: string, pathPrefix: string) {
  const listenerOf = ({ proxied }: Proxied): ProxyListener | undefined => proxied?.listener;
  const note = (req: Proxied, listener: ProxyListener): void => {
    const { url = '/' } = req;
    req.proxied = { listener, target: pathPrefix + url };
    // The library skips a request whose target it cannot read as a URL, as `//a%20b`. Behind a
    // single slash any path can be read.
    if (url.startsWith('//')) req.url = '/';
  };
  // Not bounded here: a request that waits in the agent's queue could not be ended from outside.
  const agent = new http.Agent({ keepAlive: true, maxFreeSockets: MAX_UNUSED, timeout: UNUSED_MS });
  const middleware = createProxyMiddleware<Request, Response>({
    // A URL: the library would parse a text twice for each request.
    target: new URL(origin),
    agent,
    // The library would copy each field on its own, and pipe bodies that are complete already.
    selfHandleResponse: true,
    pathRewrite: (path, req: Proxied) => req.proxied?.target ?? path,
    on: {
      proxyReq: (toBackend, req) => listenerOf(req)?.connected(toBackend),
      proxyReqWs: (toBackend, req) => listenerOf(req)?.connected(toBackend),
      proxyRes: (answer, req) => listenerOf(req)?.answered?.(answer),
      econnreset: (error, req) => listenerOf(req)?.failed(error),
      error: (error, req) => listenerOf(req)?.failed(error),
    },
  });
  return {
    /** Sends a request whose headers are those for the backend. */
    send(req: Request, res: Response, listener: ProxyListener): void {
      note(req, listener);
      // The library adds six listeners; above ten Node would warn of a leak.
      res.setMaxListeners(MAX_LISTENERS);
      middleware(req, res, (error) => listener.failed(error)).catch((error: unknown) => listener.failed(error));
    },
    /** Sends the request of a WebSocket; `head`: the bytes that came behind it. */
    upgrade(req: IncomingMessage, socket: Socket, head: Buffer, listener: ProxyListener): void {
      note(req, listener);
      middleware.upgrade(req as Request, socket, head);
    },
    /** Closes all connections: running requests fail. */
    close: () => agent.destroy(),
  };
}

/** Parts that requests and WebSockets share. */
export interface RelayParts {
  readonly proxy: BackendProxy;
  /** Places of WebSockets, those that open included, and of event streams. */
  readonly lasting: Places;
  readonly clientOf: ClientOf;
  readonly idleTimeoutMs: number;
  /** Ends exchanges that move no byte for `idleTimeoutMs`. */
  readonly watchIdle: Watch;
  /** The public form of a URL of the backend; undefined: callers cannot reach it. */
  readonly publicUrl: (url: string) => string | undefined;
  /** Facts of a request for the backend. */
  readonly factsOf: (req: IncomingMessage, requestId: string) => ForwardedFacts;
  /** Whether new requests pass. */
  readonly accepting: () => boolean;
}

/** Parts that all passed requests share. */
interface ExchangeParts extends RelayParts {
  readonly admission: Admission;
  readonly watchRate: Watch;
  readonly onEnd: (end: End) => void;
}

/** How long the rest of an upload is read after the answer, milliseconds. */
const REST_MS = 30_000;
/** Most bytes of such a rest that are read; beyond, the connection ends. */
const REST_BYTES = 4_194_304;
const EARLY_HINTS = 103;
/** Interim answers of a backend to one request; with more its answer is unusable. */
export const MAX_INTERIM = 32;
const EVENT_STREAM = /^text\/event-stream(?:$|[\s;])/i;

/** The handler of requests that pass to the backend. Its failures go to `next`. */
export function passRequests(parts: ExchangeParts): RequestHandler {
  return function passRequest(req, res, next) {
    const refused = relayedFramingRefused(req);
    if (refused === undefined && parts.accepting()) {
      exchange(parts, req, res, next);
      return;
    }
    parts.onEnd(refused === undefined ? 'busy' : 'refused');
    if (refused !== undefined) res.shouldKeepAlive = false;
    next(refused ?? busy());
  };
}

function exchange(parts: ExchangeParts, req: Request, res: Response, next: (error: unknown) => void): void {
  const client = parts.clientOf(req);
  const { socket } = req;
  const stopWatching: (() => void)[] = [];
  let admitted: Passing | undefined;
  let toBackend: ClientRequest | undefined;
  let interim = 0;
  let answered = false;
  /** Why it ends, once that is known. */
  let end: End | undefined;

  /** Whether the backend would take more of an upload that has not ended. */
  const callerUploads = (): boolean => !req.complete && toBackend?.writableNeedDrain === false;
  /**
   * Bytes of this exchange so far. The caller's bytes behind the body do not count: they are its
   * next request. Before the head of the answer the backend's do not: they are interim answers.
   */
  const moved = (): number => {
    const came = req.complete ? 0 : socket.bytesRead;
    const back = toBackend?.socket;
    return answered ? bytesMoved(back) + came + bytesSent(socket) : bytesSent(back) + came;
  };
  /** Ends the exchange if its caller is too slow, in either direction. */
  const watchRate = (): void => {
    const waits = (): boolean => callerUploads() || res.writableLength > 0;
    const rate = (): number | undefined => (waits() ? bytesMoved(socket) : undefined);
    stopWatching.push(parts.watchRate(rate, () => fail('timed_out', tooSlow())));
  };
  /** No byte moved for too long. */
  const silent = (): void =>
    fail(
      'timed_out',
      callerUploads()
        ? new GatewayError('INPUT_INVALID', { details: { reason: 'request_timeout' } })
        : new GatewayError('BACKEND_TIMEOUT', { details: { timeoutMs: parts.idleTimeoutMs } }),
    );
  /** Answers with an error, or breaks the answer off where it has begun. The first one counts. */
  const fail = (how: End, error: GatewayError): void => {
    if (end !== undefined || res.writableFinished || res.destroyed) return;
    end = res.headersSent && how === 'unreachable' ? 'broken' : how;
    admitted?.ended();
    if (toBackend !== undefined) {
      req.unpipe(toBackend);
      toBackend.destroy();
    }
    if (res.headersSent) {
      res.destroy();
      return;
    }
    noteRelayEnded(req);
    // The head of a broken answer may be copied already, but has not gone out.
    for (const name of res.getHeaderNames()) if (name !== 'x-request-id') res.removeHeader(name);
    res.statusMessage = '';
    next(error);
  };
  /** Changes the exchange's place for a lasting one. False: there is none for this caller. */
  const takesLasting = (): boolean => {
    if (!parts.lasting.take([client])) return false;
    admitted?.ended();
    let over = false;
    admitted = {
      started: () => undefined,
      ended() {
        if (!over) parts.lasting.giveBack([client]);
        over = true;
      },
    };
    return true;
  };
  const relayHints = (link: string): void => {
    if (res.headersSent || req.httpVersion !== '1.1') return;
    try {
      res.writeEarlyHints({ link: publicLinks(link, parts.publicUrl) ?? [] });
    } catch {
      // Hints in a form that Node does not write are only hints.
    }
  };
  const connected = (request: ClientRequest, { passes }: ForwardedFacts, expectsContinue: boolean): void => {
    toBackend = request;
    if (res.destroyed || end !== undefined) {
      request.destroy();
      return;
    }
    if (expectsContinue) res.writeContinue();
    // Node keeps the head until the body begins, and the backend may answer before that.
    if (hasBody(req.headers)) {
      watchRate();
      setImmediate(() => {
        if (!request.destroyed) request.flushHeaders();
      });
    }
    // Called before the pipe ends the request. Only a chunked body has trailers.
    if (req.headers['transfer-encoding'] !== undefined)
      req.prependOnceListener('end', () => {
        const trailers = passedTrailers(req.trailers, passes);
        if (trailers.length > 0 && !request.writableEnded) request.addTrailers(trailers);
      });
    request.on('information', ({ statusCode, headers: { link } }) => {
      interim += 1;
      if (interim > MAX_INTERIM) fail('unusable', backendError('backend_status', statusCode));
      else if (statusCode === EARLY_HINTS && typeof link === 'string') relayHints(link);
    });
    // The caller asked for no upgrade: `Upgrade` does not pass.
    request.on('upgrade', (_answer, tunnel) => {
      tunnel.destroy();
      fail('unusable', backendError('backend_upgrade'));
    });
  };
  const relay = (answer: IncomingMessage): void => {
    if (end !== undefined || res.destroyed) {
      answer.destroy();
      return;
    }
    answered = true;
    admitted?.started();
    const unusable = unusableAnswer(answer);
    const lasts = EVENT_STREAM.test(answer.headers['content-type'] ?? '');
    if (unusable !== undefined || (lasts && !takesLasting())) {
      // An error of this answer is ignored: the failure is known here.
      answer.on('error', () => undefined);
      answer.destroy();
      if (unusable === undefined) fail('busy', busy('streams'));
      else fail('unusable', backendError(unusable, answer.statusCode));
      return;
    }
    // After this error the library breaks off the answer to the caller.
    answer.once('error', () => {
      if (!res.destroyed) end ??= 'broken';
    });
    const chunked = answer.headers['transfer-encoding'] !== undefined;
    cleanResponseHeaders(answer, parts.publicUrl);
    copyHead(answer, res);
    // Body bytes that came in one read with the head are there in this turn.
    process.nextTick(() => {
      relayBody(answer, res, chunked);
      if (!res.writableEnded || res.writableLength > 0) watchRate();
    });
  };
  const start = (): void => {
    if (res.destroyed) return;
    const expectsContinue = /(?:^|\W)100-continue(?:$|\W)/i.test(req.headers.expect ?? '') && req.httpVersion === '1.1';
    const facts = parts.factsOf(req, requestIdOf(res));
    cleanRequestHeaders(req, facts);
    // An HTTP/1.0 answer without a length ends with its connection.
    if (req.httpVersion === '1.0') res.shouldKeepAlive = false;
    noteBodyRelayed(req);
    // A broken body is the caller's failure; the proxy would report it as the backend's.
    req.once('error', (cause) => {
      const error = new GatewayError('INPUT_INVALID', { details: { reason: 'incomplete_body' }, cause });
      fail('refused', cause instanceof GatewayError ? cause : error);
    });
    stopWatching.push(parts.watchIdle(moved, silent));
    parts.proxy.send(req, res, {
      connected: (request) => connected(request, facts, expectsContinue),
      answered: relay,
      failed: (cause) => fail('unreachable', new GatewayError('BACKEND_ERROR', { cause })),
    });
  };
  onceClosed(res, () => {
    for (const stop of stopWatching) stop();
    end ??= res.writableFinished ? 'relayed' : 'client_gone';
    parts.onEnd(end);
    readRest(req, () => admitted?.ended());
  });
  if (end !== undefined) return;
  admitted = parts.admission.enter({ client, start, refuse: (reason) => fail('busy', busy(reason)) });
  // The exchange may have started and failed before `enter` returned.
  if (end !== undefined) admitted.ended();
}

/** Bounds the rest of a body, which the proxy reads and drops: the next request is behind it. */
function readRest(req: Request, over: () => void): void {
  const { socket } = req;
  if (req.complete || socket.destroyed) {
    over();
    return;
  }
  const until = socket.bytesRead + REST_BYTES;
  const timer = setTimeout(() => socket.destroy(), REST_MS).unref();
  req.on('data', () => {
    if (socket.bytesRead > until) socket.destroy();
  });
  const ended = (): void => {
    clearTimeout(timer);
    socket.off('close', ended);
    over();
  };
  for (const event of ['end', 'close']) req.once(event, ended);
  // A request gets no event when its connection is cut behind its answer.
  socket.once('close', ended);
}

/** The largest answer that goes out as a whole with its head, bytes. */
const WHOLE_BYTES = 65_536;

/** Relays the body: at once if all of it is there and it is short, else as a stream. */
function relayBody(answer: IncomingMessage, res: Response, chunked: boolean): void {
  if (res.destroyed || res.headersSent) return;
  if (answer.complete && !chunked && answer.readableLength <= WHOLE_BYTES) {
    const bytes: Buffer | null = answer.read();
    if (bytes === null) res.end();
    else endWith(res, bytes);
    return;
  }
  // Called before the pipe ends the answer.
  if (chunked)
    answer.once('end', () => {
      const trailers = passedTrailers(answer.trailers, passesToCaller);
      if (trailers.length > 0 && !res.writableEnded) res.addTrailers(trailers);
    });
  answer.pipe(res);
  // An event stream may have a head long before its first byte. A body that is there already
  // has taken the head out by then.
  setImmediate(() => {
    if (!res.headersSent && !res.destroyed) res.flushHeaders();
  });
}

const BUSY = {
  full: 'Too many requests wait already.',
  waited: 'There was no room for this request in time.',
  streams: 'Too many event streams and WebSockets are open already.',
} as const;

/** The answer to a request for which there is no room now. */
export function busy(reason?: Refusal | 'streams'): GatewayError {
  return new GatewayError('GATEWAY_BUSY', reason && { message: BUSY[reason] });
}

function tooSlow(): GatewayError {
  return new GatewayError('INPUT_INVALID', {
    message: `Many requests run, and this body came at fewer than ${LEAST_RATE} bytes a second.`,
    details: { reason: 'request_timeout' },
  });
}

/** The backend's answer may not be relayed. */
export function backendError(reason: string, status?: number): GatewayError {
  return new GatewayError('BACKEND_ERROR', { details: { reason, ...(status === undefined ? {} : { status }) } });
}
