import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** How often the loop's own timer looks at the clock, milliseconds. It runs in native code: 200 looks a second cost nothing to speak of. */
export const LOOK_MS = 5;
const NS_PER_MS = 1_000_000;

/** How the event loop did since the last reading. */
export interface LoopReading {
  /**
   * From one look at the clock to the next, milliseconds, the median: about LOOK_MS in a loop that has time, the length of its turns
   * in one that has not. The median, because a single long turn (a collection of garbage, a core that was lent to somebody else) is no
   * overload.
   */
  readonly turnMs: number;
  /** Share of the time in which it had something to do, 0 to 1. */
  readonly busy: number;
}

/** The event loop of this process, until `stop`. */
export function watchLoop(): { readonly read: () => LoopReading; stop(): void } {
  const histogram = monitorEventLoopDelay({ resolution: LOOK_MS });
  histogram.enable();
  let before = performance.eventLoopUtilization();
  return {
    read() {
      const turnMs = histogram.count === 0 ? 0 : histogram.percentile(50) / NS_PER_MS;
      histogram.reset();
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return { turnMs, busy: utilization };
    },
    stop: () => void histogram.disable(),
  };
}
