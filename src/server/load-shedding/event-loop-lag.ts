import { performance } from 'node:perf_hooks';
import type { Turns } from './turns.ts';

/** How the event loop did since the last reading. */
export interface EventLoopLag {
  /** The mean length of the turns in which calls came in, milliseconds; 0 when none came. */
  readonly turnMs: number;
  /** Share of the time in which it had something to do, 0 to 1. */
  readonly busy: number;
}

/** Reads the event loop of this process. */
export function readEventLoopLag(turns: Turns): () => EventLoopLag {
  let before = performance.eventLoopUtilization();
  return function read() {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return { turnMs: turns.take(), busy: utilization };
  };
}
