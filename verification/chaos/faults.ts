/** Decides by seed which calls of a run fail, and how. */

import { type Seed, seedOf } from './seed.ts';

/** Decides which call of which party fails, and how. */
export interface Faults {
  /**
   * The fault of this attempt, or undefined: chosen by seed, subject and the number of the attempt,
   * so that a replay has the same faults. `seed` is for the details of the fault.
   */
  next<K extends string>(
    party: string,
    subject: string,
    rate: number,
    kinds: readonly K[],
  ): { readonly kind: K; readonly seed: Seed } | undefined;
  /** A fault that took effect later than it was chosen. */
  late(): void;
  /** Ends all faults. */
  end(): void;
  /** By party and kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Of the last fault, Unix milliseconds. */
  readonly lastAt: number;
}

export function createFaults(seed: number): Faults {
  const attempts = new Map<string, number>();
  const counts: Record<string, number> = {};
  let lastAt = 0;
  let isOver = false;
  return {
    next(party, subject, rate, kinds) {
      const key = `${party}/${subject}`;
      const attempt = (attempts.get(key) ?? 0) + 1;
      attempts.set(key, attempt);
      const own = seedOf(`${seed}/weather/${key}/${attempt}`);
      if (isOver || !own.chance(rate)) return undefined;
      const kind = own.pick(kinds);
      const name = `${party}.${kind}`;
      counts[name] = (counts[name] ?? 0) + 1;
      lastAt = Date.now();
      return { kind, seed: own };
    },
    late: () => {
      lastAt = Date.now();
    },
    end: () => {
      isOver = true;
    },
    counts,
    get lastAt() {
      return lastAt;
    },
  };
}
