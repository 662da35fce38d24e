/** The value below which `share` (0 to 1) of the sorted values lie; NaN when there are none. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const rank = Math.ceil(share * sorted.length);
  return sorted[Math.min(sorted.length - 1, Math.max(0, rank - 1))] ?? Number.NaN;
}

/** The middle value, or the mean of the two middle ones; NaN when there are none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile between the two nearest values; NaN when there are none. `share`: 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const lower = sorted[Math.floor(place)] ?? Number.NaN;
  const upper = sorted[Math.ceil(place)] ?? Number.NaN;
  return lower + (upper - lower) * (place - Math.floor(place));
}
