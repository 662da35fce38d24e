/** Ends what stands still: a connection of which no byte moves, in neither direction. */

import type { Socket } from 'node:net';
import { LinkedList } from '../linked-list.ts';

/** Looks in one idle time. More of them end it closer to its time, and cost more. */
const LOOKS = 4;

/** Bytes that have come in and gone out; what waits to be written has not moved. */
export function bytesMoved(...sockets: readonly (Socket | null | undefined)[]): number {
  let moved = 0;
  for (const socket of sockets) if (socket) moved += socket.bytesRead + socket.bytesWritten - socket.writableLength;
  return moved;
}

/** Calls `onIdle` once when `moved` did not change for the limit; the result stops it. */
export type WatchIdle = (moved: () => number, onIdle: () => void) => () => void;

interface Watched {
  readonly moved: () => number;
  readonly onIdle: () => void;
  last: number;
  /** Looks in a row at which nothing had moved. */
  quiet: number;
}

/**
 * One timer looks at all that is watched: a timer for each request would cost more than its share
 * of the looks. What stands still ends after the limit and before a quarter more of it.
 */
export function createIdleWatch(limitMs: number): WatchIdle {
  const all = new LinkedList<Watched>();
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    for (const place of all) {
      const one = place.member;
      const now = one.moved();
      one.quiet = now === one.last ? one.quiet + 1 : 0;
      one.last = now;
      if (one.quiet <= LOOKS) continue;
      all.remove(place);
      one.onIdle();
    }
    if (all.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return function watchIdle(moved, onIdle) {
    const place = all.add({ moved, onIdle, last: moved(), quiet: 0 });
    timer ??= setInterval(look, limitMs / LOOKS).unref();
    return () => void all.remove(place);
  };
}
