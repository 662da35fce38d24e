/** Signs transactions and sends them later, for facilitators that settle late. */

import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, keccak256 } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import type { Seed } from './seed.ts';

/** A signed transaction that is not sent yet. */
export interface Prepared {
  readonly hash: Hex;
  /** Sends it; resolves when mined, to whether it succeeded. */
  send(): Promise<boolean>;
}

const GAS_UNITS = 300_000n;
const FEE_WEI = 10n ** 11n;
const RECEIPT_POLL_MS = 10;
const RECEIPT_TIMEOUT_MS = 10_000;

/**
 * A transaction to the token from a relayer of its own. Each relayer has its own account nonces, so
 * a transaction that is late or never sent does not block another one.
 */
export async function prepareTransaction(chain: ChainAccess, data: Hex, seed: Seed): Promise<Prepared> {
  const relayer = privateKeyToAccount(seed.bytes32());
  const [raw] = await Promise.all([
    relayer.signTransaction({
      chainId: chain.chainId,
      nonce: 0,
      to: chain.token.address,
      data,
      gas: GAS_UNITS,
      maxFeePerGas: FEE_WEI,
      maxPriorityFeePerGas: 0n,
    }),
    chain.fundGas(relayer.address),
  ]);
  const hash = keccak256(raw);
  return {
    hash,
    async send() {
      await chain.request('eth_sendRawTransaction', [raw]);
      const deadline = Date.now() + RECEIPT_TIMEOUT_MS;
      for (;;) {
        const receipt = await chain.request('eth_getTransactionReceipt', [hash]);
        if (receipt !== null) return (receipt as { readonly status: Hex }).status === '0x1';
        if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined`);
        await delay(RECEIPT_POLL_MS);
      }
    },
  };
}
