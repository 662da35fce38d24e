/** Ends what stands still: a connection of which no byte moves, in neither direction. */

import type { Socket } from 'node:net';

/** Looks in one idle time. More of them end it closer to its time, and cost more. */
const LOOKS = 4;

/** Bytes that have come in and gone out; what waits to be written has not moved. */
export function bytesMoved(...sockets: readonly (Socket | null | undefined)[]): number {
  let moved = 0;
  for (const socket of sockets) if (socket) moved += socket.bytesRead + socket.bytesWritten - socket.writableLength;
  return moved;
}

/** Calls `onIdle` once when `moved` did not change for `limitMs`; the result stops it. */
export function watchIdle(moved: () => number, limitMs: number, onIdle: () => void): () => void {
  let last = moved();
  let quiet = 0;
  const timer = setInterval(look, limitMs / LOOKS).unref();
  function look(): void {
    const now = moved();
    quiet = now === last ? quiet + 1 : 0;
    last = now;
    if (quiet < LOOKS) return;
    clearInterval(timer);
    onIdle();
  }
  return () => clearInterval(timer);
}
