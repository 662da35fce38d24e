/**
 * How long a relayer that was found short of gas counts as short without another look,
 * milliseconds: the Retry-After of its buyers.
 */
export const LOOK_AGAIN_MS = 1_000;

/** What a relayer has, wei, and the most that one unit of gas may cost it now. */
export interface RelayerFunds {
  readonly balance: bigint;
  readonly maxFeePerGas: bigint;
}

/** What is known of a relayer's gas between two looks. */
export interface FundsWatch {
  /** Looks now. @throws when the node does not answer */
  look(): Promise<RelayerFunds>;
  /**
   * Whether a transaction with this gas limit is known not to be payable. Looks only at first, and
   * once a second while it is short: a relayer that has enough costs no call. A node that does not
   * answer proves nothing.
   */
  isShort(gas: bigint): Promise<boolean>;
  /**
   * A node has just refused a transaction for want of funds, maybe because of what waits in its
   * pool already.
   */
  refused(): void;
}

/** @param now Milliseconds of a monotonic clock. */
export function watchFunds(read: () => Promise<RelayerFunds>, now: () => number = () => performance.now()): FundsWatch {
  let known: RelayerFunds | undefined;
  let knownAt = 0;
  let refused = false;
  let looking: Promise<RelayerFunds> | undefined;

  const look = (): Promise<RelayerFunds> => {
    // Calls that come together share one look.
    looking ??= read()
      .then((funds) => {
        known = funds;
        refused = false;
        return funds;
      })
      .finally(() => {
        knownAt = now();
        looking = undefined;
      });
    return looking;
  };
  const short = (gas: bigint): boolean => refused || (known !== undefined && known.balance < gas * known.maxFeePerGas);

  return {
    look,
    async isShort(gas) {
      const stale = known === undefined || (short(gas) && now() - knownAt >= LOOK_AGAIN_MS);
      if (stale) await look().catch(() => undefined);
      return short(gas);
    },
    refused() {
      refused = true;
      knownAt = now();
    },
  };
}
