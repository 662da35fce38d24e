/** Decides which calls of a run fail, and how. */

import { type Seed, seedOf } from './seed.ts';

/** Decides which call of which party goes wrong, and how. */
export interface Weather {
  /**
   * The fault of this visit, or undefined: chosen by seed, subject and the number of the visit, so
   * that a replay meets the same. `seed` is for the details of the fault.
   */
  strike<K extends string>(
    party: string,
    subject: string,
    rate: number,
    kinds: readonly K[],
  ): { readonly kind: K; readonly seed: Seed } | undefined;
  /** A fault that took effect later than it was chosen. */
  felt(): void;
  /** From now on nothing goes wrong. */
  calm(): void;
  /** By party and kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Of the last fault, Unix milliseconds. */
  readonly lastAt: number;
}

export function createWeather(seed: number): Weather {
  const visits = new Map<string, number>();
  const counts: Record<string, number> = {};
  let lastAt = 0;
  let isCalm = false;
  return {
    strike(party, subject, rate, kinds) {
      const place = `${party}/${subject}`;
      const visit = (visits.get(place) ?? 0) + 1;
      visits.set(place, visit);
      const own = seedOf(`${seed}/weather/${place}/${visit}`);
      if (isCalm || !own.chance(rate)) return undefined;
      const kind = own.pick(kinds);
      const counter = `${party}.${kind}`;
      counts[counter] = (counts[counter] ?? 0) + 1;
      lastAt = Date.now();
      return { kind, seed: own };
    },
    felt: () => {
      lastAt = Date.now();
    },
    calm: () => {
      isCalm = true;
    },
    counts,
    get lastAt() {
      return lastAt;
    },
  };
}
