/** Blocks this thread, as a burst of work or a collection of garbage does. `ms` milliseconds. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
