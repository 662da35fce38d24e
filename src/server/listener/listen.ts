import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Express, Request } from 'express';
import { Standstill } from '../../time/stand-still.ts';
import { originForm } from '../http/target.ts';
import type { LoadShedder } from '../load-shedding/load-shedder.ts';
import { Connections, leaveInOrder, type RefusalListener } from './connections.ts';

/** Socket bounds of contract 3. Two proofs of 8 KiB must fit into the head. */
const LIMITS = {
  maxHeaderSize: 32_768,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
  // Node's own refusal of a request without Host has no envelope; `checkFraming` refuses it with
  // one.
  requireHostHeader: false,
} as const;
const MAX_HEADERS = 100;
/**
 * A connection on which no byte moves in either direction for so long is closed, milliseconds: who
 * asks and never reads would keep it for ever. Longer than the longest call may be silent: its
 * verification, settlement and merchant have deadlines of 5, 60 and 120 s.
 */
export const SILENT_MS = 300_000;
/**
 * Most open connections of a listener: further ones are closed unanswered, so that idle ones cannot
 * eat the memory of running calls.
 */
export const MAX_CONNECTIONS = 4_096;

/**
 * Connections of a listener that serves so many calls at a time: whoever is served keeps one, and
 * callers between two calls another.
 */
export function connectionsFor(maxInFlight: number): number {
  return Math.max(MAX_CONNECTIONS, 2 * maxInFlight);
}

/** A listener with its address once it listens. */
export interface Listener {
  readonly server: http.Server;
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Stops accepting and closes idle connections; running requests finish. */
  stop(): void;
  /** Stops, and ends whatever is still open. */
  destroy(): void;
}

/** What a listener is made of. */
export interface ListenerParts {
  readonly app: Express;
  /** Asked when a head is written: whether the connection is to end with this answer. */
  readonly closing?: () => boolean;
  readonly onRefused: RefusalListener;
  /** Answers what is not let in, before Express sees it. */
  readonly loadShedder?: LoadShedder;
  readonly maxConnections?: number;
  readonly silentMs?: number;
  /**
   * How long the head of a request may take, and how often that is looked at, milliseconds; 10,000
   * and 2,000 unless given.
   */
  readonly headersTimeout?: number;
  readonly connectionsCheckingInterval?: number;
}

/**
 * An HTTP server for an Express app. Requests and responses are born with Express's own prototypes,
 * so that Express need not change them for every request, which is what makes it slow.
 */
export function createListener(parts: ListenerParts): Listener {
  const { app, closing = () => false, onRefused, loadShedder: door = () => false } = parts;
  const standstill = new Standstill();
  const connections = new Connections(onRefused, standstill);
  leaveInOrder(app, connections, closing);
  const answer: http.RequestListener = (req, res) => {
    routable(req);
    // An answer that no other one is before is out at once: to note it would be a tenth of what the
    // refusal costs.
    const first = res.socket?.writable === true;
    if (first && door(req, res)) return;
    if (connections.began(req, res) && (first || !door(req, res))) app(req, res);
  };
  const server = http.createServer(
    {
      ...LIMITS,
      ...(parts.headersTimeout === undefined ? {} : { headersTimeout: parts.headersTimeout }),
      ...(parts.connectionsCheckingInterval === undefined
        ? {}
        : { connectionsCheckingInterval: parts.connectionsCheckingInterval }),
      IncomingMessage: bornAs<typeof http.IncomingMessage>(http.IncomingMessage, app.request),
      ServerResponse: bornAs<typeof http.ServerResponse>(http.ServerResponse, app.response),
    },
    answer,
  );
  server.maxHeadersCount = MAX_HEADERS;
  server.maxConnections = parts.maxConnections ?? MAX_CONNECTIONS;
  server.timeout = parts.silentMs ?? SILENT_MS;
  // The body reader decides when to invite the body, so an unwanted one is never sent.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  server.on('clientError', (error, socket) => connections.fault(error, socket));
  server.on('connect', (req, tunnel) => connections.tunnel(req, tunnel));
  return {
    server,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ host, port }, () => {
          server.off('error', reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    stop() {
      server.close();
      server.closeIdleConnections();
    },
    destroy() {
      standstill.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Gives the target the one form that Express reads like everybody else. Of a target that names an
 * origin it finds no path where that origin is none that it knows, and then answers with a page of
 * its own, before any layer. The target as it was sent is `originalUrl`.
 */
function routable(req: http.IncomingMessage & Pick<Partial<Request>, 'originalUrl'>): void {
  const { url = '/' } = req;
  const target = originForm(url);
  if (target === url) return;
  req.originalUrl = url;
  req.url = target;
}

/**
 * A class whose instances have `prototype` from birth; Express sets the same one later, which then
 * changes nothing.
 */
function bornAs<C extends new (...given: never[]) => object>(Base: C, prototype: object): C {
  function Born(...given: unknown[]): object {
    return Reflect.construct(Base, given, Born);
  }
  Born.prototype = prototype;
  Object.setPrototypeOf(Born, Base);
  return Born as unknown as C;
}
