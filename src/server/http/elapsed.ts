/** Whole milliseconds since the call came in. */
export function elapsedMs(call: { readonly startedAt: number }): number {
  return Math.round(performance.now() - call.startedAt);
}
