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

/**
 * Belongs to no client: what happens to a client's connection cannot reach the merchant's call.
 * Never connected.
 */
const NO_CLIENT = new Socket();

/** A request that came from no socket, with the exchange it stands for. */
class DetachedRequest<Cargo> extends IncomingMessage {
  readonly cargo: Cargo;

  constructor(cargo: Cargo) {
    super(NO_CLIENT);
    this.cargo = cargo;
    // The real path was built and checked before the call was priced; here it would only be parsed
    // once more.
    this.url = '/';
    this.method = 'GET';
  }
}

/**
 * http-proxy-middleware in capture mode: created once with a fixed target and none of its own
 * plugins, it carries each cargo over a detached request/response pair to `transport`, which takes
 * the place of its `node:http` transport. So every channel gets the merchant's answer as a value,
 * and no header, redirect or error page of the middleware can reach a caller.
 */
function createFrame<Cargo>(
  target: URL,
  transport: (cargo: Cargo) => void,
): (cargo: Cargo, refused: (cause: unknown) => void) => void {
  const plugin: Plugin = (proxy) => {
    // The passes of httpxy have no names. Should a later version name them, this throws at start.
    proxy.before('web', '', (request) => {
      if (!(request instanceof DetachedRequest)) throw new TypeError('only detached requests enter the frame');
      transport(request.cargo);
      return true;
    });
    // Failures also come through `next`; without a listener the emitter would throw them a second
    // time.
    proxy.on('error', () => {});
  };
  const middleware = createProxyMiddleware({ target, ejectPlugins: true, selfHandleResponse: true, plugins: [plugin] });
  return (cargo, refused) => {
    const request = new DetachedRequest(cargo);
    // `next` is called only when the middleware did not take the request.
    middleware(request, new ServerResponse(request), refused).catch(refused);
  };
}

/** Most sockets to one backend origin (contract 3). */
const MAX_BACKEND_SOCKETS = 256;

/** The way to a merchant. */
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

/**
 * The way to a merchant whose state is known, so that no money is taken for what he cannot deliver
 * (contract 4.6).
 */
export interface WatchedBackend extends BackendConnection {
  readonly reserve: ReserveBackend;
  /** What is known of the merchant, for readiness and metrics. */
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

/** Where the merchant is and how he is spoken to. */
interface ExchangeOptions {
  /**
   * Scheme, host and port of the backend; redirects are never followed, so nothing else is ever
   * contacted.
   */
  readonly origin: string;
  readonly maxSockets?: number;
  /**
   * Resolves the name at every connection, `dns.lookup` unless given; never to a link-local or
   * metadata address.
   */
  readonly resolve?: LookupFunction;
  /**
   * False opens a connection for each exchange: a side effect must not meet a socket that the
   * merchant closes in the same moment, where it cannot be told whether it was sent (acp 13.3).
   */
  readonly reuse?: boolean;
}

/** Opens the way to one merchant: http-proxy-middleware as frame, undici as transport. */
export function createExchange(options: ExchangeOptions): BackendConnection {
  const { maxSockets = MAX_BACKEND_SOCKETS } = options;
  const { hop } = openDeps(options, maxSockets, undefined);
  return hop;
}

/**
 * Opens the way to a merchant and watches over it: a first trial runs at once. One of the sockets
 * is the trials' own. `probe`: what may be asked of him without paying; undefined: a connection
 * that opens is all that a trial can show.
 */
export function watchBackend(
  options: ExchangeOptions & { readonly probe: Probe | undefined; readonly onChange: ReachListener },
): WatchedBackend {
  const { maxSockets = MAX_BACKEND_SOCKETS, origin, resolve, probe, onChange } = options;
  const trying = new Connection(origin, new BackendSocket(resolve));
  const breaker = new CircuitBreaker(createTrial(trying, new URL(origin).host, probe), onChange);
  const { hop, deps, sendOver } = openDeps(options, maxSockets - 1, breaker);
  const reservations = createReservations({
    ...{ sockets: deps.sockets, pool: deps.pool, heldBack: deps.heldBack, breaker },
    asks: probe !== undefined,
    mostHeld: Math.floor(maxSockets / 2),
    exchangeOver: sendOver,
  });
  void breaker.look();
  const stop = async (): Promise<void> => {
    breaker.stop();
    await trying.destroy();
  };
  return {
    ...hop,
    reserve: reservations.reserve,
    facts: () => ({
      state: breaker.state,
      opened: breaker.opened,
      refused: reservations.refused,
      held: reservations.held(),
    }),
    async close() {
      await Promise.all([stop(), hop.close()]);
    },
    async abort() {
      await Promise.all([stop(), hop.abort()]);
    },
  };
}

function openDeps(options: ExchangeOptions, maxSockets: number, breaker: CircuitBreaker | undefined) {
  const origin = new URL(options.origin);
  const pool = new ConnectionPool(
    maxSockets,
    () => new Connection(origin, new BackendSocket(options.resolve), options.reuse),
  );
  // A number, not a set of hops: tables that grow and shrink with every call keep dead calls alive
  // until a full collection.
  let running = 0;
  const enter = createFrame<Passage>(origin, ({ hop, connection }) =>
    connection.dispatch(outgoing(hop, origin.host), hop),
  );
  const sockets = new SocketPoolQueue(maxSockets);
  const deps: ExchangeDeps = {
    sockets,
    pool,
    health: breaker ?? UNWATCHED,
    mute: () => breaker?.mute === true,
    heldBack: new SlowReaders(() => sockets.wanted),
    send: (hop, connection) => enter({ hop, connection }, (cause) => hop.fail('transport', cause)),
    ended() {
      running -= 1;
    },
  };
  const begin = (hop: BackendExchange): ReturnType<Exchange> => {
    running += 1;
    hop.begin();
    return hop.answer;
  };
  let closed: Promise<void> | undefined;
  const hop: BackendConnection = {
    exchange: (request, limits) =>
      limits.signal?.aborted
        ? Promise.reject(new BackendError('aborted', false))
        : begin(new BackendExchange(request, limits, deps)),
    inFlight: () => running,
    close: () => (closed ??= pool.close()),
    abort: () => (closed = pool.destroy()),
  };
  const sendOver =
    (connection: Connection, ended: () => void): Exchange =>
    (request, limits) => {
      const both = (): void => {
        deps.ended();
        ended();
      };
      return begin(new BackendExchange(request, limits, { ...deps, ended: both }, connection));
    };
  return { hop, deps, sendOver };
}

/** A hop and the connection it travels on. */
interface Passage {
  readonly hop: BackendExchange;
  readonly connection: Connection;
}

/**
 * The request as it goes out. Host and Content-Length are ours alone, whatever the prepared headers
 * say; the body is never chunked.
 */
function outgoing({ request }: BackendExchange, host: string): Dispatcher.DispatchOptions {
  const { method, path, headers, body } = request;
  return { method, path, headers: { ...headers, host, 'content-length': undefined }, body: body ?? null };
}
