/** Knows whether the event loop has little time left for more work. */

/** How much of the time the loop may work before it counts as busy. */
const BUSY_SHARE = 0.6;
/** Between two looks, milliseconds. */
const LOOK_MS = 50;

/** The share of the last moments is read at most every `LOOK_MS`, when it is asked for. */
export function watchLoopLoad(): () => boolean {
  let last = performance.eventLoopUtilization();
  let lookedAt = performance.now();
  let busy = false;
  return function loopBusy() {
    const now = performance.now();
    if (now - lookedAt < LOOK_MS) return busy;
    const current = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(current, last).utilization > BUSY_SHARE;
    last = current;
    lookedAt = now;
    return busy;
  };
}
