/** What gas costs the relayer, from the newest block that was seen. */

import type { Client } from 'viem';
import { hexToBigInt } from 'viem/utils';
import type { Head } from '../chain/client.ts';
import { RpcRefusal } from '../chain/rpc.ts';
import type { Fees } from '../evm/transaction.ts';

/** Offered to the block producer when the node suggests nothing, wei. */
const DEFAULT_TIP_WEI = 1_000_000_000n;
/** The base fee may double (six full blocks) before a transaction is left out. */
const BASE_FEE_FACTOR = 2n;
/** How long a block that was seen gives the price, milliseconds. */
export const HEAD_FRESH_MS = 1_000;
/** How long a suggested tip holds, milliseconds. */
export const TIP_FRESH_MS = 30_000;

export interface FeeWatch {
  /** Notes the newest block. */
  saw(head: Head): void;
  /** The fees of a transaction that is sent now. @throws when the node does not answer */
  current(): Promise<Fees>;
}

interface FeeWatchDeps {
  readonly client: Client;
  /** Reads the newest block. */
  readonly head: () => Promise<Head>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Reads nothing while blocks are seen anyway. */
export function watchFees({ client, head, now = () => performance.now() }: FeeWatchDeps): FeeWatch {
  let seen: { readonly baseFee: bigint; readonly at: number } | undefined;
  let tip: { readonly wei: bigint; readonly at: number } | undefined;
  const saw = ({ baseFee }: Head): void => {
    seen = { baseFee, at: now() };
  };
  const baseFee = async (): Promise<bigint> => {
    if (seen === undefined || now() - seen.at >= HEAD_FRESH_MS) saw(await head());
    return seen?.baseFee ?? 0n;
  };
  const currentTip = async (): Promise<bigint> => {
    if (tip === undefined || now() - tip.at >= TIP_FRESH_MS) tip = { wei: await suggestedTip(client), at: now() };
    return tip.wei;
  };
  return {
    saw,
    async current() {
      const [base, maxPriorityFeePerGas] = await Promise.all([baseFee(), currentTip()]);
      return { maxPriorityFeePerGas, maxFeePerGas: BASE_FEE_FACTOR * base + maxPriorityFeePerGas };
    },
  };
}

/** Not every node has this method. */
async function suggestedTip(client: Client): Promise<bigint> {
  try {
    return hexToBigInt(await client.request({ method: 'eth_maxPriorityFeePerGas' }));
  } catch (error) {
    if (error instanceof RpcRefusal) return DEFAULT_TIP_WEI;
    throw error;
  }
}
