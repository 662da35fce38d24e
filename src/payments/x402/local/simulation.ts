import type { RailVerdict } from '../../rail.ts';
import { readQuantity } from '../chain/chain-answers.ts';
import { type Rpc, RpcRefusal } from '../chain/rpc.ts';
import { authorizationStateCall, balanceCall } from '../evm/calldata.ts';
import { NONCE_ALREADY_USED } from '../wire/reasons.ts';
import type { Eip3009Authorization } from '../wire/types.ts';

/**
 * What a simulated transfer says: `revert` texts of FiatToken 2.2 and of tokens that follow it, and
 * the token of ours.
 */
const REVERT_TEXTS: readonly (readonly [text: RegExp, reason: string])[] = [
  [/expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
  [/signature/i, 'invalid_exact_evm_payload_signature'],
];
/** "authorization is used or canceled", "authorization is used". */
const SPENT_TEXT = /authorization.*(?:used|cancell?ed)/i;
const UNEXPLAINED = 'invalid_exact_evm_transaction_simulation_failed';

/** A transfer that is tried out and not sent. */
export interface Simulation {
  readonly asset: string;
  readonly relayer: string;
  readonly data: string;
  /**
   * A cap, so that a payer's contract cannot burn more in the simulation than it could on chain.
   */
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
}

/**
 * Tries the transfer out in the newest block, as the relayer would send it. Names the cause when it
 * fails.
 */
export async function simulate(rpc: Rpc, simulation: Simulation): Promise<RailVerdict> {
  const { asset, relayer, data, gas } = simulation;
  try {
    const call = { from: relayer, to: asset, data, gas: `0x${gas.toString(16)}` };
    await rpc.call('eth_call', [call, 'latest']);
    return { kind: 'valid' };
  } catch (error) {
    if (!(error instanceof RpcRefusal) || !error.reverted) return { kind: 'unavailable', cause: causeOf(error) };
    return explain(rpc, simulation, error.message);
  }
}

/**
 * State first, text second: the state of nonce and balance is the same on every token, the words
 * are not.
 */
async function explain(rpc: Rpc, { asset, authorization }: Simulation, text: string): Promise<RailVerdict> {
  const { from, nonce, value } = authorization;
  try {
    const [spent, balance] = await Promise.all([
      rpc.call('eth_call', [{ to: asset, data: authorizationStateCall(from, nonce) }, 'latest']),
      rpc.call('eth_call', [{ to: asset, data: balanceCall(from) }, 'latest']),
    ]);
    if (readQuantity(spent, 'authorization state') !== 0n)
      return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    // The state may be a block behind the simulation: a node that names the cause is believed far
    // enough to ask the chain.
    if (SPENT_TEXT.test(text)) return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    const known = REVERT_TEXTS.find(([pattern]) => pattern.test(text));
    if (known !== undefined) return { kind: 'refused', reason: known[1], nonceSpent: false };
    const short = readQuantity(balance, 'balance') < BigInt(value);
    return { kind: 'refused', reason: short ? 'insufficient_funds' : UNEXPLAINED, nonceSpent: false };
  } catch (error) {
    return { kind: 'unavailable', cause: causeOf(error) };
  }
}

function causeOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the chain node failed';
}
