/**
 * Opens the way to one backend over undici, and for the backend of resources a circuit breaker with
 * connections held before money moves. What is sold goes this way: its whole exchange is one value,
 * with a deadline, a bound of its size and a connection of its own. What only passes is proxied.
 */

import type { LookupFunction } from 'node:net';
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
import { ConnectionPool, limitSockets } from './connection-pool.ts';
import { BackendError, type Exchange, type ReserveBackend } from './exchange.ts';
import { createReservations, type Held, type ReserveRefusal } from './reservations.ts';
import { SlowReaders } from './slow-readers.ts';

/** Most sockets to one backend origin (contract 3). */
const MAX_BACKEND_SOCKETS = 256;

export interface BackendConnection {
  readonly exchange: Exchange;
  /** Exchanges whose last byte has not come yet, those that wait for a socket included. */
  inFlight(): number;
  /** Those of them that do not end with their caller, as all that is paid. */
  paidInFlight(): number;
  /**
   * Refuses new exchanges (`unreachable`), waits for the running ones, closes the sockets. May be
   * called again.
   */
  close(): Promise<void>;
  /** Ends what still runs (`transport`) and closes the sockets; until `resume` nothing begins. */
  interrupt(): Promise<void>;
  resume(): void;
  /** Interrupts it for good. */
  abort(): Promise<void>;
}

/** A backend whose state is known, so that no money is taken while it is away (contract 4.6). */
export interface WatchedBackend extends BackendConnection {
  readonly reserve: ReserveBackend;
  /** Tries now whether it can be reached. Never rejects. */
  tryNow(): Promise<void>;
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
    tryNow: () => breaker.tryNow(),
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
  let paid = 0;
  let interrupted = false;
  const sockets = limitSockets(maxSockets);
  const deps: ExchangeDeps = {
    sockets,
    pool,
    health: breaker ?? UNWATCHED,
    unresponsive: () => breaker?.unresponsive === true,
    slowReaders: new SlowReaders(() => sockets.waiting > 0),
    send(exchange, connection) {
      if (interrupted) {
        exchange.fail('unreachable');
        return;
      }
      try {
        connection.dispatch(outgoing(exchange, origin.host), exchange);
      } catch (cause) {
        exchange.fail('transport', cause);
      }
    },
    ended(exchange) {
      running -= 1;
      if (exchange.endsAlone) paid -= 1;
    },
  };
  const begin = (exchange: BackendExchange): ReturnType<Exchange> => {
    running += 1;
    if (exchange.endsAlone) paid += 1;
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
    paidInFlight: () => paid,
    close: () => (closed ??= pool.close()),
    interrupt() {
      interrupted = true;
      return pool.destroy();
    },
    resume() {
      interrupted = false;
    },
    abort: () => (closed = connection.interrupt()),
  };
  const exchangeOver =
    (held: Held, ended: () => void): Exchange =>
    (request, limits) => {
      const both = (exchange: BackendExchange): void => {
        deps.ended(exchange);
        ended();
      };
      return begin(new BackendExchange(request, limits, { ...deps, ended: both }, held));
    };
  return { connection, deps, exchangeOver };
}

/**
 * The request as it goes out. Only the gateway sets Host and Content-Length, whatever the prepared
 * headers say; the body is never chunked.
 */
function outgoing({ request }: BackendExchange, host: string): Dispatcher.DispatchOptions {
  const { method, path, headers, body } = request;
  return { method, path, headers: { ...headers, host, 'content-length': undefined }, body: body ?? null };
}
