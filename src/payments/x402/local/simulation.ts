/** Simulates a transfer before the relayer sends it, and names the reason when it would fail. */

import type { Client, Hex } from 'viem';
import { numberToHex } from 'viem/utils';
import type { RailVerdict } from '../../rail.ts';
import { askAsset } from '../chain/client.ts';
import { nodeFailure, RpcRefusal } from '../chain/rpc.ts';
import { lowerHex } from '../evm/abi-words.ts';
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
interface Simulation {
  readonly asset: string;
  readonly relayer: string;
  readonly data: Hex;
  /** A cap, so that a payer's contract uses no more gas in the simulation than on chain. */
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
}

/** Simulates the transfer in the newest block, as the relayer would send it. */
export async function simulate(client: Client, simulation: Simulation): Promise<RailVerdict> {
  const { asset, relayer, data, gas } = simulation;
  try {
    const call = { from: lowerHex(relayer), to: lowerHex(asset), data, gas: numberToHex(gas) };
    await client.request({ method: 'eth_call', params: [call, 'latest'] });
    return { kind: 'valid' };
  } catch (error) {
    if (!(error instanceof RpcRefusal) || !error.reverted) return { kind: 'unavailable', cause: nodeFailure(error) };
    return explain(client, simulation, error.message);
  }
}

/** State first, text second: nonce and balance mean the same on every token, the texts differ. */
async function explain(client: Client, { asset, authorization }: Simulation, text: string): Promise<RailVerdict> {
  const { from, nonce, value } = authorization;
  try {
    const [spent, balance] = await Promise.all([
      askAsset(client, asset, 'authorizationState', [lowerHex(from), lowerHex(nonce)]),
      askAsset(client, asset, 'balanceOf', [lowerHex(from)]),
    ]);
    if (spent !== 0n) return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    // The state may be a block behind the simulation, so the text makes the rail ask the chain.
    if (SPENT_TEXT.test(text)) return { kind: 'refused', reason: NONCE_ALREADY_USED, nonceSpent: true };
    const known = REVERT_TEXTS.find(([pattern]) => pattern.test(text));
    if (known !== undefined) return { kind: 'refused', reason: known[1], nonceSpent: false };
    return { kind: 'refused', reason: balance < BigInt(value) ? 'insufficient_funds' : UNEXPLAINED, nonceSpent: false };
  } catch (error) {
    return { kind: 'unavailable', cause: nodeFailure(error) };
  }
}
