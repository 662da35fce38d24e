/** Measures how long one input blocks the event loop. */

import { readFileSync } from 'node:fs';
import type { Target } from '../target.ts';
import { converse } from './conversation.ts';

/**
 * How often an input is sent again: a garbage collection falls into one measurement, not into all.
 */
const LOOKS = 3;
/** Long enough for any input; the figure shows the time. */
const PATIENCE_MS = 60_000;
/** Below this no measurement is repeated, milliseconds. */
const SHORT_MS = 5;

/**
 * How long these bytes keep the event loop, milliseconds at most: the time for which the gateway's
 * main thread has the processor from when they are sent until they are answered. Wall time would
 * also count other processes. The least of several measurements.
 */
export async function blockedBy({ url, gateway }: Target, bytes: Buffer): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LOOKS && least > SHORT_MS; look += 1) {
    const hostile = await converse(url);
    const before = onProcessorMs(gateway.pid);
    hostile.send(bytes);
    await hostile.until(1, PATIENCE_MS);
    least = Math.min(least, onProcessorMs(gateway.pid) - before);
    hostile.close();
  }
  return least;
}

/** Of the main thread; the first number of its schedstat is in nanoseconds. */
function onProcessorMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}
