/**
 * Opens the way to one backend: http-proxy-middleware as the frame, undici as the transport, and
 * for the backend of resources a circuit breaker with connections held before money moves.
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import { type LookupFunction, Socket } from 'node:net';
import { createProxyMiddleware, type Plugin } from 'http-proxy-middleware';
import type { Dispatcher } from 'undici';
import { BackendExchange, type ExchangeDeps } from './backend-exchange.ts';
import { BackendSocket, Connection } from './backend-socket.ts';
import {
  type BackendTrouble,
  type BreakerState,
  CircuitBreaker,
  createTrial,
  type Probe,
  type ReachListener,
  UNWATCHED,
} from './circuit-breaker.ts';
import { ConnectionPool, SocketPoolQueue } from './connection-pool.ts';
import { BackendError, type Exchange, type ReserveBackend } from './exchange.ts';
import { createReservations, type ReserveRefusal } from './reservations.ts';
import { SlowReaders } from './slow-readers.ts';

/** Most sockets to one backend origin (contract 3). */
const MAX_BACKEND_SOCKETS = 256;

export interface BackendConnection {
  readonly exchange: Exchange;
  /** Exchanges whose last byte has not come yet, those in the queue included. */
  inFlight(): number;
  /**
   * Refuses new exchanges (`unreachable`), waits for the running ones, closes the sockets. May be
   * called again.
   */
  close(): Promise<void>;
  /** Ends what still runs (`transport`) and closes the sockets. */
  abort(): Promise<void>;
}

/** A backend whose state is known, so that no money is taken while it is away (contract 4.6). */
export interface WatchedBackend extends BackendConnection {
  readonly reserve: ReserveBackend;
  /** What is known of the backend, for readiness and metrics. */
  facts(): BackendFacts;
}

interface BackendFacts {
  readonly state: BreakerState;
  /** How often the breaker opened. */
  readonly opened: Readonly<Record<BackendTrouble, number>>;
  /** Calls that got no connection, and so cost nothing. */
  readonly refused: Readonly<Record<ReserveRefusal, number>>;
  /** Connections that calls hold while their money moves. */
  readonly held: number;
}

interface ExchangeOptions {
  /** Scheme, host and port. Redirects are never followed, so nothing else is ever contacted. */
  readonly origin: string;
  readonly maxSockets?: number;
  /**
   * Resolves the name at every connection, `dns.lookup` unless given; never to a link-local or
   * metadata address.
   */
  readonly resolve?: LookupFunction;
  /**
   * False opens a connection for each exchange: a side effect must not use a socket that the
   * backend may be closing, because then it is not known whether it was sent (acp 13.3).
   */
  readonly reuse?: boolean;
}

/** Opens the way to a backend whose state is not watched. */
export function createExchange(options: ExchangeOptions): BackendConnection {
  const { maxSockets = MAX_BACKEND_SOCKETS } = options;
  return openTransport(options, maxSockets, undefined).connection;
}

/**
 * Opens the way to a backend and watches its state: a first trial runs at once. One of the sockets
 * is kept for trials. `probe`: a request that costs nothing; without it a trial can only show that
 * a connection opens.
 */
export function watchBackend(
  options: ExchangeOptions & { readonly probe: Probe | undefined; readonly onChange: ReachListener },
): WatchedBackend {
  const { maxSockets = MAX_BACKEND_SOCKETS, origin, resolve, probe, onChange } = options;
  const trials = new Connection(origin, new BackendSocket(resolve));
  const breaker = new CircuitBreaker(createTrial(trials, new URL(origin).host, probe), onChange);
  const { connection, deps, exchangeOver } = openTransport(options, maxSockets - 1, breaker);
  const reservations = createReservations({
    ...{ sockets: deps.sockets, pool: deps.pool, slowReaders: deps.slowReaders, breaker, exchangeOver },
    canProbe: probe !== undefined,
    mostHeld: Math.floor(maxSockets / 2),
  });
  void breaker.tryNow();
  const stop = async (): Promise<void> => {
    breaker.stop();
    await trials.destroy();
  };
  return {
    ...connection,
    reserve: reservations.reserve,
    facts: () => ({
      state: breaker.state,
      opened: breaker.opened,
      refused: reservations.refused,
      held: reservations.held(),
    }),
    async close() {
      await Promise.all([stop(), connection.close()]);
    },
    async abort() {
      await Promise.all([stop(), connection.abort()]);
    },
  };
}

function openTransport(options: ExchangeOptions, maxSockets: number, breaker: CircuitBreaker | undefined) {
  const origin = new URL(options.origin);
  const pool = new ConnectionPool(
    maxSockets,
    () => new Connection(origin, new BackendSocket(options.resolve), options.reuse),
  );
  // A number, not a set of exchanges: tables that grow and shrink with every call keep ended calls
  // alive until a full collection.
  let running = 0;
  const sendFramed = createFrame(origin);
  const sockets = new SocketPoolQueue(maxSockets);
  const deps: ExchangeDeps = {
    sockets,
    pool,
    health: breaker ?? UNWATCHED,
    unresponsive: () => breaker?.unresponsive === true,
    slowReaders: new SlowReaders(() => sockets.wanted),
    send: (exchange, connection) => sendFramed({ exchange, connection }, (cause) => exchange.fail('transport', cause)),
    ended() {
      running -= 1;
    },
  };
  const begin = (exchange: BackendExchange): ReturnType<Exchange> => {
    running += 1;
    exchange.begin();
    return exchange.answer;
  };
  let closed: Promise<void> | undefined;
  const connection: BackendConnection = {
    exchange: (request, limits) =>
      limits.signal?.aborted
        ? Promise.reject(new BackendError('aborted', false))
        : begin(new BackendExchange(request, limits, deps)),
    inFlight: () => running,
    close: () => (closed ??= pool.close()),
    abort: () => (closed = pool.destroy()),
  };
  const exchangeOver =
    (held: Connection, ended: () => void): Exchange =>
    (request, limits) => {
      const both = (): void => {
        deps.ended();
        ended();
      };
      return begin(new BackendExchange(request, limits, { ...deps, ended: both }, held));
    };
  return { connection, deps, exchangeOver };
}

/** An exchange and the connection that carries it. */
interface Carried {
  readonly exchange: BackendExchange;
  readonly connection: Connection;
}

/** Never connected: what happens to a client's connection cannot end an exchange. */
const NO_CLIENT = new Socket();

/** A request that came from no socket, with the exchange that it stands for. */
class DetachedRequest extends IncomingMessage {
  readonly carried: Carried;

  constructor(carried: Carried) {
    super(NO_CLIENT);
    this.carried = carried;
    // The real path was built and checked before the call was priced; here it would only be parsed
    // once more.
    this.url = '/';
    this.method = 'GET';
  }
}

/**
 * http-proxy-middleware in capture mode: with a fixed target and none of its own plugins, it takes
 * a detached request/response pair, and undici's dispatch replaces its `node:http` transport. So
 * every channel gets the backend's answer as a value, and no header, redirect or error page of the
 * middleware can reach a caller.
 */
function createFrame(target: URL): (carried: Carried, refused: (cause: unknown) => void) => void {
  const plugin: Plugin = (proxy) => {
    // The passes of httpxy have no names. If a later version names them, this throws at start.
    proxy.before('web', '', (request) => {
      if (!(request instanceof DetachedRequest)) throw new TypeError('only detached requests enter the frame');
      const { exchange, connection } = request.carried;
      connection.dispatch(outgoing(exchange, target.host), exchange);
      return true;
    });
    // Failures also come through `next`; without a listener the emitter would throw them a second
    // time.
    proxy.on('error', () => {});
  };
  const middleware = createProxyMiddleware({ target, ejectPlugins: true, selfHandleResponse: true, plugins: [plugin] });
  return (carried, refused) => {
    const request = new DetachedRequest(carried);
    // `next` is called only when the middleware did not take the request.
    middleware(request, new ServerResponse(request), refused).catch(refused);
  };
}

/**
 * The request as it goes out. Only the gateway sets Host and Content-Length, whatever the prepared
 * headers say; the body is never chunked.
 */
function outgoing({ request }: BackendExchange, host: string): Dispatcher.DispatchOptions {
  const { method, path, headers, body } = request;
  return { method, path, headers: { ...headers, host, 'content-length': undefined }, body: body ?? null };
}
