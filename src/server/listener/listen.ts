/** The listeners of a process: HTTP servers with their limits, in front of the Express apps. */

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express, Request } from 'express';
import { Standstill } from '../../time/stand-still.ts';
import { hasBody } from '../http/framing.ts';
import { listenOn } from '../http/listen-on.ts';
import { isBodyRelayed } from '../http/relayed-body.ts';
import { originForm } from '../http/target.ts';
import type { LoadShedder } from '../limits/load-shedder.ts';
import { connectionOf } from './connection.ts';
import { Faults, leaveInOrder, type RefusalListener } from './connections.ts';
import { Room } from './room.ts';

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
  /** Ends what is still open. */
  disconnect(): void;
  /** Stops, and ends what is still open. */
  destroy(): void;
}

/** What a listener leaves to the relay of requests. */
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
  /** Answers what is refused before Express sees it. */
  readonly loadShedder?: LoadShedder;
  /** Most connections, and whether clients are told apart by their addresses; asked for each. */
  readonly maxConnections?: () => number;
  readonly sharesClients?: () => boolean;
  readonly silentMs?: number;
  /** Where requests are relayed: their bodies may take longer than those that are read here. */
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
  // All of them are seen, and `framing.ts` counts them; the size of the head is bounded above.
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

/** A class whose instances have `prototype`, so that it changes nothing when Express sets it. */
function withPrototype<C extends new (...given: never[]) => object>(Base: C, prototype: object): C {
  function Derived(...given: unknown[]): object {
    return Reflect.construct(Base, given, Derived);
  }
  Derived.prototype = prototype;
  Object.setPrototypeOf(Derived, Base);
  return Derived as unknown as C;
}
