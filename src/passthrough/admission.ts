/**
 * The share of the process that passed requests get: a few of them start at a time, some more wait
 * for their turn, those that run are counted, and those that stand still are ended. Calls that are
 * sold have slots of their own. No client has all places, of those that run or of those that wait;
 * clients that wait take turns.
 *
 * All calls share one event loop, so work that begins together makes a sold call wait, not the
 * number of connections. The loop works at the beginning of an exchange and at the head of its
 * answer; between the two an exchange costs nothing.
 */

import type { Socket } from 'node:net';
import { type Entrant, Limiter } from '../limiter.ts';
import { LinkedList } from '../linked-list.ts';
import type { Time } from '../time/time.ts';

/**
 * Most exchanges that start at the same time. A flood of passed requests leaves three quarters of
 * the paid calls with two, half of them with four, a tenth with 64.
 */
export const STARTING = 2;
/**
 * How long an exchange is counted as starting at most, milliseconds. A slower backend does not keep
 * the loop busy, and slow operations must not hold back the quick ones.
 */
export const STARTING_MS = 10;
/** That bound while the loop has time, so that many slow exchanges may start, milliseconds. */
export const CALM_STARTING_MS = 1;
/** The loop has time left while it works for at most this share of the time. */
const BUSY_SHARE = 0.6;
/**
 * Requests that wait for their turn, as many as a listener has connections: a 503 costs as much as
 * an answer, and its client asks again at once.
 */
export const MAX_WAITING = 4_096;
/** The longest wait of a request, milliseconds. */
export const MAX_WAIT_MS = 5_000;

/** The right of one exchange to run. Both may be called more than once. */
export interface Passing {
  /** The head of the answer is relayed: the next one may start. */
  started(): void;
  /** It is over, or does not wait any more. */
  ended(): void;
}

export type Admission = ReturnType<typeof createAdmission>;

/**
 * `maxRunning`: exchanges at the same time, those that start included; asked for each of them,
 * because the bound may change while they run. `busy`: the share of the time that the event loop
 * works.
 */
export function createAdmission(maxRunning: () => number, busy: () => number, time?: Time) {
  let starting = 0;
  const limiter = new Limiter({
    ...{ most: maxRunning, each: 'share', isOpen: () => starting < STARTING },
    ...{ waiting: MAX_WAITING, eachWaiting: 'share', waitMs: MAX_WAIT_MS, time },
  });
  return {
    /** Starts the entrant now, later or never. */
    enter({ client, start, refuse }: Pick<Entrant, 'client' | 'refuse'> & { start(): void }): Passing {
      let timer: NodeJS.Timeout | undefined;
      const started = (): void => {
        if (timer === undefined) return;
        clearTimeout(timer);
        timer = undefined;
        starting -= 1;
        limiter.serve();
      };
      const admitted = limiter.enter({
        client,
        refuse,
        start() {
          starting += 1;
          timer = setTimeout(started, busy() > BUSY_SHARE ? STARTING_MS : CALM_STARTING_MS).unref();
          start();
        },
      });
      return {
        started,
        ended() {
          started();
          admitted.leave();
        },
      };
    },
    running: () => limiter.taken,
    waiting: () => limiter.waiting,
    /** Whether half of all places to run are taken. */
    crowded: () => 2 * limiter.taken >= maxRunning(),
  };
}

/** Looks at an exchange within one limit. More looks end it closer to the limit, and cost more. */
const LOOKS = 4;
/** The shortest time over which the rate of a body is measured, milliseconds. */
export const RATE_MS = 30_000;
/** The least rate of a body, bytes a second: far below that of a phone at the edge of its cell. */
export const LEAST_RATE = 500;

/** Bytes that have gone out, without those that wait to be written. */
export function bytesSent(socket: Socket | null | undefined): number {
  return socket ? socket.bytesWritten - socket.writableLength : 0;
}

/** Bytes that have come in and gone out. */
export function bytesMoved(...sockets: readonly (Socket | null | undefined)[]): number {
  let moved = 0;
  for (const socket of sockets) if (socket) moved += socket.bytesRead + bytesSent(socket);
  return moved;
}

/**
 * Calls `onEnd` once when too few bytes moved; the result stops the watch. `moved`: bytes so far;
 * undefined while no side waits for bytes.
 */
export type Watch = (moved: () => number | undefined, onEnd: () => void) => () => void;

interface Watched {
  readonly moved: () => number | undefined;
  readonly onEnd: () => void;
  last: number | undefined;
  /** Looks since `last`. */
  looks: number;
}

/** Ends exchanges that moved no byte for the limit, at most half of the limit late. */
export function createIdleWatch(limitMs: number): Watch {
  return createWatch(limitMs, (last, now) => now !== last);
}

/** Ends exchanges that moved fewer than `LEAST_RATE` bytes a second, while `scarce` is true. */
export function createRateWatch(scarce: () => boolean, limitMs: number = RATE_MS): Watch {
  const least = (LEAST_RATE * limitMs) / 1_000;
  return createWatch(limitMs, (last, now, over) => {
    if (last === undefined || now === undefined) return true;
    return over && (now - last >= least || !scarce());
  });
}

/**
 * One timer looks at all watched exchanges, which costs less than a timer for each. `lives`:
 * whether the limit begins anew; `over`: the limit has passed since `last`.
 */
function createWatch(
  limitMs: number,
  lives: (last: number | undefined, now: number | undefined, over: boolean) => boolean,
): Watch {
  const all = new LinkedList<Watched>();
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    for (const place of all) {
      const one = place.member;
      const now = one.moved();
      one.looks += 1;
      const over = one.looks > LOOKS;
      if (lives(one.last, now, over)) {
        one.last = now;
        one.looks = 0;
      } else if (over) {
        all.remove(place);
        one.onEnd();
      }
    }
    if (all.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return function watch(moved, onEnd) {
    const place = all.add({ moved, onEnd, last: moved(), looks: 0 });
    timer ??= setInterval(look, limitMs / LOOKS).unref();
    return () => void all.remove(place);
  };
}
