import { isObject } from '../../../json/object.ts';
import { isTransactionHash, readQuantity, UnreadableAnswer } from '../chain/chain-answers.ts';
import type { Rpc } from '../chain/rpc.ts';
import { authorizationStateCall } from '../evm/calldata.ts';

/** A number of an account that was meant to carry an authorization. */
interface OutrunQuestion {
  readonly account: string;
  readonly number: number;
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
}

/**
 * Whether another transaction took the number: it is used up in a block in which the authorization is still unspent. Both are read of one
 * block by its hash, because behind a balancer two answers may come from two nodes.
 * @throws when the node does not answer, or knows no reading by hash
 */
export async function isOutrun(rpc: Rpc, { account, number, asset, from, nonce }: OutrunQuestion): Promise<boolean> {
  const block = await rpc.call('eth_getBlockByNumber', ['latest', false]);
  const blockHash = isObject(block) ? block['hash'] : undefined;
  if (!isTransactionHash(blockHash)) throw new UnreadableAnswer('block hash');
  const [count, state] = await Promise.all([
    rpc.call('eth_getTransactionCount', [account, { blockHash }]),
    rpc.call('eth_call', [{ to: asset, data: authorizationStateCall(from, nonce) }, { blockHash }]),
  ]);
  return readQuantity(count, 'transaction count') > BigInt(number) && readQuantity(state, 'authorization state') === 0n;
}
