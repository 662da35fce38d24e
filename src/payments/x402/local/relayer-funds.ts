/** Watches the relayer's gas money, so that a payment it cannot send is refused early. */

import { ACCOUNT_GAS } from './transfer.ts';

/** Below this many transfers at the present price, readiness warns. */
export const LOW_GAS_TRANSFERS = 10;

/** How long a relayer counts as short without another reading: the Retry-After of its buyers. */
export const LOOK_AGAIN_MS = 1_000;

/** What a relayer has, wei, and the highest price of one unit of gas now. */
export interface RelayerFunds {
  readonly balance: bigint;
  readonly maxFeePerGas: bigint;
}

/** How many transfers of accounts the relayer can pay at the highest price now. */
export function transfersPaidBy({ balance, maxFeePerGas }: RelayerFunds): number {
  return maxFeePerGas === 0n ? Number.MAX_SAFE_INTEGER : Number(balance / (ACCOUNT_GAS * maxFeePerGas));
}

export interface FundsWatch {
  /** Reads now. @throws when the node does not answer */
  look(): Promise<RelayerFunds>;
  /**
   * Whether a transaction with this gas limit is known not to be payable. Reads only the first
   * time, and once a second while funds are short: enough funds cost no call. A node that does not
   * answer proves nothing.
   */
  isShort(gas: bigint): Promise<boolean>;
  /** Notes that a node refused a transaction for want of funds, maybe for others in its pool. */
  refused(): void;
}

/** @param now Milliseconds of a monotonic clock. */
export function watchFunds(read: () => Promise<RelayerFunds>, now: () => number = () => performance.now()): FundsWatch {
  let known: RelayerFunds | undefined;
  let knownAt = 0;
  let refused = false;
  let looking: Promise<RelayerFunds> | undefined;

  const look = (): Promise<RelayerFunds> => {
    // Concurrent calls share one reading.
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
