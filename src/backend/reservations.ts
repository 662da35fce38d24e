import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import type { Connection } from './backend-socket.ts';
import { type CircuitBreaker, Unanswered } from './circuit-breaker.ts';
import type { ConnectionPool, SocketPoolQueue } from './connection-pool.ts';
import type { Exchange, HeldConnection, ReserveBackend } from './exchange.ts';
import type { SlowReaders } from './slow-readers.ts';

/**
 * How long a call waits for a place among the sockets, milliseconds; connecting has a deadline of
 * its own.
 */
const PLACE_WAIT_MS = 2_000;
/**
 * How long a new connection is watched before it is believed, milliseconds: one that is closed
 * right behind its accept is no way.
 */
const WATCHED_MS = 2;
/**
 * Between the end of a held connection and its reopening, milliseconds: a merchant who closes at
 * once must not be called in a loop.
 */
const REOPEN_MS = 50;
/**
 * An answer that is older proves nothing where the merchant can be asked without paying him,
 * milliseconds.
 */
const HEARD_MS = 1_000;

/**
 * Why a call got no connection. `breaker`: the merchant is known to be away. `connect`: it could
 * not be opened, or did not stay open. `sockets`: all are in use, or half of them are held already.
 */
export type ReserveRefusal = 'breaker' | 'connect' | 'sockets';

/** What reservations stand on. */
interface ReservationParts {
  readonly sockets: SocketPoolQueue;
  readonly pool: ConnectionPool;
  readonly heldBack: SlowReaders;
  readonly breaker: CircuitBreaker;
  /** Whether the merchant can be asked without paying him, so that a trial brings an answer. */
  readonly asks: boolean;
  /** Most connections that are held and not used yet. */
  readonly mostHeld: number;
  /**
   * Sends a request over a connection of the pool that has a place; both are given back at its end,
   * which is told to `ended`.
   */
  readonly exchangeOver: (connection: Connection, ended: () => void) => Exchange;
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
 * one. A merchant closes a used connection after a few idle seconds, which is less than a
 * settlement may take, so what became stale meanwhile is not used. One that ends is opened again,
 * so that the call finds it open.
 */
export function createReservations(parts: ReservationParts): Reservations {
  const { sockets, pool, breaker } = parts;
  const refused = { breaker: 0, connect: 0, sockets: 0 };
  let held = 0;
  /** Calls that hold one or use it. */
  let calls = 0;

  const isReachable = async (): Promise<boolean> => {
    if (parts.asks && breaker.state === 'closed' && breaker.quietMs > HEARD_MS) await breaker.look();
    return breaker.state === 'closed' || (breaker.state === 'probation' && calls === 0);
  };
  const placed = (): Promise<boolean> =>
    new Promise((resolve) => {
      const start = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        if (sockets.leave(start)) resolve(false);
      }, PLACE_WAIT_MS);
      sockets.take(start);
      if (sockets.wanted) parts.heldBack.relieve();
    });
  const giveBack = (connection: Connection): void => {
    pool.giveBack(connection);
    sockets.release();
  };
  const opened = async (connection: Connection): Promise<boolean> => {
    if (connection.live && !connection.stale) {
      // What the merchant did to it is read within a turn.
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
  const hold = (connection: Connection): HeldConnection => {
    let reopening: NodeJS.Timeout | undefined;
    const reopen = (): void => {
      reopening = setTimeout(
        () => connection.opened().catch((cause: unknown) => breaker.unreachable(cause)),
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
    const ended = (): void => {
      calls -= 1;
    };
    return {
      exchange(request, limits) {
        unhold();
        if (connection.stale) connection.drop();
        return parts.exchangeOver(connection, ended)(request, limits);
      },
      release() {
        unhold();
        // Perhaps never used, and then the library would not look whether it is still open before
        // it writes.
        connection.drop();
        giveBack(connection);
        ended();
      },
    };
  };
  const tryToReserve = async (): Promise<HeldConnection | ReserveRefusal> => {
    if (!(await isReachable())) return 'breaker';
    if (held >= parts.mostHeld) return 'sockets';
    held += 1;
    calls += 1;
    const connection = (await placed()) ? pool.take() : undefined;
    if (connection !== undefined && (await opened(connection))) return hold(connection);
    held -= 1;
    calls -= 1;
    if (connection === undefined) return 'sockets';
    giveBack(connection);
    return 'connect';
  };
  return {
    async reserve() {
      const got = await tryToReserve();
      if (typeof got !== 'string') return got;
      refused[got] += 1;
      return undefined;
    },
    held: () => held,
    refused,
  };
}
