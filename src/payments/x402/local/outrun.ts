/** Tells whether another transaction took a number that was to be ours. */

import type { Client } from 'viem';
import { getBlock, getTransactionCount } from 'viem/actions';
import { askAsset, readReceipt } from '../chain/client.ts';
import { lowerHex } from '../evm/abi-words.ts';
import type { Eip3009Authorization } from '../wire/types.ts';

/** A number, the hash of the transaction that was to have it, and all that it would have spent. */
export interface OutrunQuestion {
  readonly number: number;
  readonly hash: string;
  readonly authorizations: readonly Eip3009Authorization[];
}

/**
 * Whether another transaction took the number: it is used up in a block in which every one of the
 * authorizations is still unspent, and the hash has no receipt. All are read at one block hash,
 * because behind a balancer two answers may come from two nodes.
 * @throws when the node does not answer, or knows no reading by hash
 */
export async function isOutrun(
  client: Client,
  account: string,
  asset: string,
  { number, hash, authorizations }: OutrunQuestion,
): Promise<boolean> {
  const { hash: blockHash } = await getBlock(client);
  const [count, receipt, states] = await Promise.all([
    getTransactionCount(client, { address: lowerHex(account), blockHash }),
    readReceipt(client, hash),
    Promise.all(
      authorizations.map(({ from, nonce }) =>
        askAsset(client, asset, 'authorizationState', [lowerHex(from), lowerHex(nonce)], { blockHash }),
      ),
    ),
  ]);
  return count > number && receipt === undefined && states.every((state) => state === 0n);
}
