/** Reserves a connection to the backend for a call before its money moves (contract 4.6). */

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { type Admitted, Counts, type Limiter } from '../limiter.ts';
import type { Connection } from './backend-socket.ts';
import { type CircuitBreaker, Unanswered } from './circuit-breaker.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { Exchange, HeldConnection, ReserveBackend, Sale } from './exchange.ts';
import type { SlowReaders } from './slow-readers.ts';

/** How long a new connection is watched, milliseconds: it may be closed right after its accept. */
const WATCHED_MS = 2;
/** Before a held connection is reopened, milliseconds, in case the backend closes it at once. */
const REOPEN_MS = 50;
/** An older answer is no proof of health where a probe can bring a new one, milliseconds. */
const FRESH_ANSWER_MS = 1_000;

/**
 * Why a call got no connection. `breaker`: the backend is known to be away, or its resource or
 * payer got no answers. `connect`: it could not be opened, or did not stay open. `sockets`: all are
 * in use, or half of them are held already, or by calls that are not paid yet.
 */
export type ReserveRefusal = 'breaker' | 'connect' | 'sockets';

/** A connection of the pool with its place among the sockets. */
export interface Held {
  readonly connection: Connection;
  readonly place: Admitted;
}

interface ReservationParts {
  readonly sockets: Limiter;
  readonly pool: ConnectionPool;
  readonly slowReaders: SlowReaders;
  readonly breaker: CircuitBreaker;
  /** Whether the backend has a probe, so that a trial brings an answer. */
  readonly canProbe: boolean;
  /** Most connections that are held and not used yet. */
  readonly mostHeld: number;
  /** Sends a request over a connection that is held; `ended` is called at the end. */
  readonly exchangeOver: (held: Held, ended: () => void) => Exchange;
}

/** Connections that calls hold while their money moves. */
export interface Reservations {
  readonly reserve: ReserveBackend;
  /** Held and not used yet. */
  held(): number;
  readonly refused: Readonly<Record<ReserveRefusal, number>>;
}

/**
 * Holds a connection for each call before its money moves: one that was used a moment ago, or a new
 * one. A backend closes a used connection after a few idle seconds, which is less than a settlement
 * may take, so one that became stale meanwhile is not used. One that ends is opened again, so that
 * the call finds it open.
 */
export function createReservations(parts: ReservationParts): Reservations {
  const { sockets, pool, breaker } = parts;
  const refused = { breaker: 0, connect: 0, sockets: 0 };
  let held = 0;
  /** Calls that hold one or use it, by the resource whose money they risk. */
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
      // What the backend did to it is read within a turn of the event loop.
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
    async reserve(sale) {
      const got = await tryToReserve(sale);
      if (typeof got !== 'string') return got;
      refused[got] += 1;
      return undefined;
    },
    held: () => held,
    refused,
  };
}
