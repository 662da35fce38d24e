/** A source of random numbers that repeats for the same seed. */
export interface Chance {
  /** 0 to below 1. */
  next(): number;
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number;
  pick<T>(from: readonly T[]): T;
  happens(probability: number): boolean;
}

/** mulberry32: small, quick, and good enough to choose faults with. `seed` is any integer. */
export function chanceOf(seed: number): Chance {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    pick<T>(from: readonly T[]): T {
      const chosen = from[below(from.length)];
      if (chosen === undefined) throw new Error('nothing to choose from');
      return chosen;
    },
    happens: (probability) => next() < probability,
  };
}
