import { RecentMap } from '../../limits/recent-map.ts';

/** Most checkouts that are remembered: those of the last minutes, at a pace that no signer keeps up with (ap2.md 16). */
const MAX_MINTED = 10_000;

/** The checkouts that this process signed itself, by their hash: nobody has to check its own signature. */
export interface MintedCheckouts {
  /** Notes a checkout, signed at `at`; it counts until `exp`. Unix seconds, `at` with its fraction. */
  add(hash: string, at: number, exp: number): void;
  /** When it was signed; undefined for any other one. */
  signedAt(hash: string, now: number): number | undefined;
}

export function createMintedCheckouts(): MintedCheckouts {
  const signed = new RecentMap<{ readonly at: number; readonly exp: number }>(MAX_MINTED);
  return {
    add(hash, at, exp) {
      signed.add(hash, { at, exp });
    },
    signedAt(hash, now) {
      const found = signed.use(hash);
      return found !== undefined && now < found.exp ? found.at : undefined;
    },
  };
}
