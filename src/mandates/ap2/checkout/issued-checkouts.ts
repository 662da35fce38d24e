import { RecentMap } from '../../../time/recent-map.ts';

/** Most checkouts that are remembered (ap2 16). */
const MAX_MINTED = 10_000;

/** The checkouts that this process signed itself, by their hash: nobody has to check its own signature. */
export interface IssuedCheckouts {
  /** Notes a checkout; it counts until `exp`, unix seconds. */
  add(hash: string, exp: number): void;
  has(hash: string, now: number): boolean;
}

export function createIssuedCheckouts(): IssuedCheckouts {
  const ends = new RecentMap<number>(MAX_MINTED);
  return {
    add: (hash, exp) => ends.add(hash, exp),
    has: (hash, now) => now < (ends.use(hash) ?? 0),
  };
}
