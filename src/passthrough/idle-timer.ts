/** Ends what stands still, and bodies whose caller is too slow while places are scarce. */

import type { Socket } from 'node:net';
import { LinkedList } from '../linked-list.ts';

/** Looks in one limit. More of them end it closer to its time, and cost more. */
const LOOKS = 4;
/** Over how long the rate of a body is measured at least, milliseconds. */
export const RATE_MS = 30_000;
/** The least rate of a body, bytes a second: far below what a phone at the edge of its cell has. */
export const LEAST_RATE = 500;

/** Bytes that have gone out; what waits to be written has not. */
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
 * Calls `onEnd` once when too little moved; the result stops it. `moved`: bytes so far; undefined
 * where nothing is waited for.
 */
export type Watch = (moved: () => number | undefined, onEnd: () => void) => () => void;

interface Watched {
  readonly moved: () => number | undefined;
  readonly onEnd: () => void;
  last: number | undefined;
  /** Looks since `last`. */
  looks: number;
}

/** Ends what moved nothing for the limit, before a quarter more of it has passed. */
export function createIdleWatch(limitMs: number): Watch {
  return createWatch(limitMs, (last, now) => now !== last);
}

/** Ends what moved fewer than `LEAST_RATE` bytes a second, while `scarce` says so. */
export function createRateWatch(scarce: () => boolean, limitMs: number = RATE_MS): Watch {
  const least = (LEAST_RATE * limitMs) / 1_000;
  return createWatch(limitMs, (last, now, over) => {
    if (last === undefined || now === undefined) return true;
    return over && (now - last >= least || !scarce());
  });
}

/**
 * One timer looks at all that is watched: a timer for each request would cost more than its share
 * of the looks. `lives`: whether to begin again; `over`: the limit has passed since `last`.
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
