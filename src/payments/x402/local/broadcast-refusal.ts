import { RpcRefusal } from '../chain/rpc.ts';

/** What a node's answer to a broadcast is worth: words of geth and its kin, of reth and anvil, Nethermind, Besu and Erigon. */

const KNOWN = /already ?(?:known|imported)|known transaction/i;
const OUTRUN = /nonce.{0,10}too.?low|old ?nonce/i;
const UNFUNDED = /insufficient ?(?:funds|balance)|upfront cost exceeds/i;
const SHORT_OF_GAS = /intrinsic.?gas|floor data gas/i;

/**
 * Why a node certainly keeps nothing of a transaction: its sender cannot pay for it, its gas limit is below what its bytes cost, or its
 * number is used up in the node's blocks. The last one alone does not say by what.
 */
export type Exclusion = 'unfunded' | 'short_of_gas' | 'outrun';

/** Undefined where the transaction may be on its way all the same, which is so after every answer that is not known to exclude it. */
export function exclusionOf(error: unknown): Exclusion | undefined {
  if (!(error instanceof RpcRefusal) || isKnown(error)) return undefined;
  if (UNFUNDED.test(error.message)) return 'unfunded';
  if (SHORT_OF_GAS.test(error.message)) return 'short_of_gas';
  return OUTRUN.test(error.message) ? 'outrun' : undefined;
}

/** The node has these bytes already, which is as good as taking them. */
export function isKnown(error: unknown): boolean {
  return error instanceof RpcRefusal && KNOWN.test(error.message);
}
