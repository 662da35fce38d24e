/** Simulates a transfer before the relayer sends it, and names the reason when it would fail. */

import type { RailVerdict } from '../../rail.ts';
import { quantity, readQuantity } from '../chain/chain-answers.ts';
import { nodeFailure, type Rpc, RpcRefusal } from '../chain/rpc.ts';
import { authorizationStateCall, balanceCall } from '../evm/calldata.ts';
import { NONCE_ALREADY_USED } from '../wire/reasons.ts';
import type { Eip3009Authorization } from '../wire/types.ts';

/** `revert` texts of FiatToken 2.2 and of tokens that follow it, with the token of contract 1.3. */
const REVERT_TEXTS: readonly (readonly [text: RegExp, reason: string])[] = [
  [/expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
  [/signature/i, 'invalid_exact_evm_payload_signature'],
];
/** "authorization is used or canceled", "authorization is used". */
const SPENT_TEXT = /authorization.*(?:used|cancell?ed)/i;
const UNEXPLAINED = 'invalid_exact_evm_transaction_simulation_failed';

/** A transfer to simulate. */
export interface Simulation {
  readonly asset: string;
  readonly relayer: string;
  readonly data: string;
  /** A cap, so that a payer's contract uses no more gas in the simulation than on chain. */
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
}

/** Simulates the transfer in the newest block, as the relayer would send it. */
export async function simulate(rpc: Rpc, simulation: Simulation): Promise<RailVerdict> {
  const { asset, relayer, data, gas } = simulation;
  try {
    const call = { from: relayer, to: asset, data, gas: quantity(gas) };
    await rpc.call('eth_call', [call, 'latest']);
    return { kind: 'valid' };
  } catch (error) {
    if (!(error instanceof RpcRefusal) || !error.reverted) return { kind: 'unavailable', cause: nodeFailure(error) };
    return explain(rpc, simulation, error.message);
  }
}

/** State first, text second: nonce and balance mean the same on every token, the texts differ. */
async function explain(rpc: Rpc, { asset, authorization }: Simulation, text: string): Promise<RailVerdict> {
  const { from, nonce, value } = authorization;
  try {
    const [spent, balance] = await Promise.all([
      rpc.call('eth_call', [{ to: asset, data: authorizationStateCall(from, nonce) }, 'latest']),
      rpc.call('eth_call', [{ to: asset, data: balanceCall(from) }, 'latest']),
    ]);
    if (readQuantity(spent, 'authorization state') !== 0n)
      return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    // The state may be a block behind the simulation, so the text makes the rail ask the chain.
    if (SPENT_TEXT.test(text)) return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    const known = REVERT_TEXTS.find(([pattern]) => pattern.test(text));
    if (known !== undefined) return { kind: 'refused', reason: known[1], nonceSpent: false };
    const short = readQuantity(balance, 'balance') < BigInt(value);
    return { kind: 'refused', reason: short ? 'insufficient_funds' : UNEXPLAINED, nonceSpent: false };
  } catch (error) {
    return { kind: 'unavailable', cause: nodeFailure(error) };
  }
}
