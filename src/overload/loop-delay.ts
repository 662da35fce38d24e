import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the loop's own timer looks at the clock, milliseconds. It runs in native code: 200 looks a second cost nothing to speak of. */
export const LOOK_MS = 5;
const NS_PER_MS = 1_000_000;

/**
 * Reads how long the event loop takes from one look at the clock to the next, milliseconds: the median since the last reading. About
 * LOOK_MS in a loop that has time, the length of its turns in one that has not. The median, because a single long turn (a collection
 * of garbage, a core that was lent to somebody else) is no overload.
 */
export type DelayReading = () => number;

/** The reading of this process, until `stop`. */
export function readLoopDelay(): { readonly read: DelayReading; stop(): void } {
  const histogram = monitorEventLoopDelay({ resolution: LOOK_MS });
  histogram.enable();
  return {
    read() {
      const median = histogram.count === 0 ? 0 : histogram.percentile(50) / NS_PER_MS;
      histogram.reset();
      return median;
    },
    stop: () => void histogram.disable(),
  };
}
