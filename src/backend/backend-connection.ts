/**
 * Opens the transport to one backend over undici; `watchBackend` adds a circuit breaker, and
 * connections held before money moves (contract 4.6). Sold calls use this transport: each exchange
 * has a deadline, a bound of its size and a connection of its own. A proxy carries passed requests.
 */

import type { LookupFunction } from 'node:net';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { Counts } from '../limiter.ts';
import {
  BackendError,
  BackendExchange,
  type Exchange,
  type ExchangeDeps,
  type Held,
  type HeldConnection,
  type ReserveBackend,
  type Sale,
} from './backend-exchange.ts';
import {
  type BackendTrouble,
  type BreakerState,
  CircuitBreaker,
  createTrial,
  type Probe,
  type ReachListener,
  UNWATCHED,
  Unanswered,
} from './circuit-breaker.ts';
import { Connection, ConnectionPool, limitSockets } from './connection-pool.ts';
import { SlowReaders } from './slow-readers.ts';

/** How long a new connection is watched, milliseconds: it may be closed right after its accept. */
const WATCHED_MS = 2;
/** The pause before a held connection reopens, milliseconds: the backend may close it at once. */
const REOPEN_MS = 50;
/** An answer older than this proves no health where a probe exists, milliseconds. */
const FRESH_ANSWER_MS = 1_000;

/**
 * Reasons why a call got no connection. `breaker`: the backend is known to be away, or the call's
 * resource or payer got no answers. `connect`: no connection opened and stayed open. `sockets`: all
 * are in use, or calls hold half of them already, or unpaid calls hold or use half of them.
 */
type ReserveRefusal = 'breaker' | 'connect' | 'sockets';

/** Most sockets to one backend origin (contract 3). */
const MAX_BACKEND_SOCKETS = 256;

export interface BackendConnection {
  readonly exchange: Exchange;
  /** Exchanges whose last byte has not come yet, those that wait for a socket included. */
  inFlight(): number;
  /** The exchanges in flight that have no `signal`, as all paid ones: no caller can end them. */
  paidInFlight(): number;
  /**
   * Waits for running exchanges and closes their sockets; a later exchange may open another. May be
   * called again.
   */
  close(): Promise<void>;
  /** Ends running exchanges (`transport`) and closes the sockets; until `resume` none begins. */
  interrupt(): Promise<void>;
  resume(): void;
  /** Interrupts for good: no `resume` follows. */
  abort(): Promise<void>;
}

/** A backend whose state is known, so that no money is taken while it is away (contract 4.6). */
export interface WatchedBackend extends BackendConnection {
  readonly reserve: ReserveBackend;
  /** Tries now to reach the backend. Never rejects. */
  tryNow(): Promise<void>;
  /** Facts of the backend, for readiness and metrics. */
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
   * False opens a connection for each exchange. On a socket that the backend may be closing the
   * gateway cannot know whether a request with a side effect arrived (acp 13.3).
   */
  readonly reuse?: boolean;
}

/** Opens the transport to a backend whose state is not watched. */
export function createExchange(options: ExchangeOptions): BackendConnection {
  const { maxSockets = MAX_BACKEND_SOCKETS } = options;
  return openTransport(options, maxSockets, undefined).connection;
}

/**
 * Opens the transport to a backend and watches its state: a first trial runs at once. One of the
 * sockets is kept for trials. `probe`: a request that costs nothing; without it a trial can only
 * show that a connection opens.
 */
export function watchBackend(
  options: ExchangeOptions & { readonly probe: Probe | undefined; readonly onChange: ReachListener },
): WatchedBackend {
  const { maxSockets = MAX_BACKEND_SOCKETS, origin, resolve, probe, onChange } = options;
  const trials = new Connection(origin, resolve);
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
  const pool = new ConnectionPool(maxSockets, () => new Connection(origin, options.resolve, options.reuse));
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

interface ReservationParts extends Pick<ExchangeDeps, 'sockets' | 'pool' | 'slowReaders'> {
  readonly breaker: CircuitBreaker;
  /** Whether the backend has a probe, so that a trial brings an answer. */
  readonly canProbe: boolean;
  /** Most connections that are held and not used yet. */
  readonly mostHeld: number;
  /** Sends a request over a held connection; `ended` is called when the exchange has ended. */
  readonly exchangeOver: (held: Held, ended: () => void) => Exchange;
}

/**
 * Holds a connection for each call before its money moves: one that was used a moment ago, or a new
 * one. A backend closes a used connection after a few idle seconds, which is less than a settlement
 * may take, so one that became stale meanwhile is not used. One that ends is opened again, so that
 * the call finds it open.
 */
function createReservations(parts: ReservationParts) {
  const { sockets, pool, breaker } = parts;
  const refused = { breaker: 0, connect: 0, sockets: 0 };
  let held = 0;
  /** Calls that hold or use a connection: paid ones by resource and in all, unpaid ones in all. */
  const running = new Counts();
  const ALL = '';
  const UNPAID = ' ';
  const namesOf = ({ settle, resourceId }: Sale) => (settle === 'after' ? [UNPAID] : [ALL, resourceId]);

  const isAllowed = async (sale: Sale): Promise<boolean> => {
    if (parts.canProbe && breaker.state === 'closed' && breaker.sinceAnswerMs > FRESH_ANSWER_MS) await breaker.tryNow();
    return breaker.allows(sale, { resource: running.of(sale.resourceId), all: running.of(ALL) });
  };
  const taken = async (): Promise<Held | undefined> => {
    const waits = sockets.wait({ kind: 'reservation' });
    if (sockets.waiting > 0) parts.slowReaders.relieve();
    const place = await waits;
    return place && { connection: pool.take(), place };
  };
  const giveBack = ({ connection, place }: Held): void => {
    pool.giveBack(connection);
    place.leave();
  };
  const opened = async (connection: Connection): Promise<boolean> => {
    if (connection.live && !connection.stale) {
      // The event loop reads a close by the backend within one turn.
      await turn();
      if (connection.live) return true;
    }
    connection.drop();
    try {
      await connection.opened();
      await pause(WATCHED_MS);
      if (connection.live) return true;
      breaker.silent(new Unanswered('a new connection was closed at once'));
    } catch (cause) {
      breaker.unreachable(cause);
    }
    return false;
  };
  const hold = (one: Held, sale: Sale): HeldConnection => {
    const { connection } = one;
    let reopening: NodeJS.Timeout | undefined;
    const reopen = (): void => {
      reopening = setTimeout(
        () =>
          connection.opened().catch((cause: unknown) => {
            if (!connection.destroyed) breaker.unreachable(cause);
          }),
        REOPEN_MS,
      );
      reopening.unref();
    };
    connection.on('disconnect', reopen);
    const unhold = (): void => {
      held -= 1;
      clearTimeout(reopening);
      connection.off('disconnect', reopen);
    };
    const ended = (): void => running.add(namesOf(sale), -1);
    return {
      exchange(request, limits) {
        unhold();
        if (connection.stale) connection.drop();
        return parts.exchangeOver(one, ended)(request, limits);
      },
      release() {
        unhold();
        // The library does not check whether a connection that was never used is still open.
        connection.drop();
        giveBack(one);
        ended();
      },
    };
  };
  const tryToReserve = async (sale: Sale): Promise<HeldConnection | ReserveRefusal> => {
    if (!(await isAllowed(sale))) return 'breaker';
    if (held >= parts.mostHeld || (sale.settle === 'after' && running.of(UNPAID) >= parts.mostHeld)) return 'sockets';
    held += 1;
    running.add(namesOf(sale), 1);
    const one = await taken();
    if (one !== undefined && (await opened(one.connection))) return hold(one, sale);
    held -= 1;
    running.add(namesOf(sale), -1);
    if (one === undefined) return 'sockets';
    giveBack(one);
    return 'connect';
  };
  return {
    async reserve(sale: Sale): Promise<HeldConnection | undefined> {
      const got = await tryToReserve(sale);
      if (typeof got !== 'string') return got;
      refused[got] += 1;
      return undefined;
    },
    /** Connections that are held and not used yet. */
    held: () => held,
    refused,
  };
}
