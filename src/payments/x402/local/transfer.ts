/**
 * The call that moves the money of one authorization, the gas of one or many such calls, and their
 * simulation, which makes many in one call in the order of a batch.
 */

import type { Client, Hex } from 'viem';
import { getCode } from 'viem/actions';
import { numberToHex } from 'viem/utils';
import type { RailVerdict } from '../../rail.ts';
import { OversizedAnswer } from '../chain/http-json.ts';
import { askAsset, limitsCaller, nodeFailure, OversizedRequest, RpcRefusal } from '../chain/node.ts';
import { aggregateCall, lowerHex, MULTICALL3, marked, succeeded, transferCall } from '../evm/eip3009.ts';
import { NONCE_ALREADY_USED } from '../wire/reasons.ts';
import type { Eip3009Authorization, Proof } from '../wire/types.ts';
import type { RelayedCall } from './relayer.ts';

/** Gas limits of a transfer; a payer that is a contract runs its own code, within a cap. */
export const ACCOUNT_GAS = 160_000n;
const CONTRACT_GAS = 400_000n;
/** Gas limit of a batch: for the transaction, and for each transfer in it. */
const BATCH_GAS = 60_000n;
const EACH_GAS = 100_000n;

/** A transfer with its gas limit when it is sent alone. */
export interface Transfer {
  readonly data: `0x${string}`;
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
  readonly signedBy: Proof['signedBy'];
}

export function transferOf({ payload, signedBy }: Proof): Transfer {
  const { authorization, signature } = payload.payload;
  const data = transferCall(authorization, signature, signedBy);
  return { data, authorization, signedBy, gas: signedBy === 'account' ? ACCOUNT_GAS : CONTRACT_GAS };
}

/** A transfer, and the mark that goes behind it on the chain. */
interface MarkedTransfer {
  readonly transfer: Transfer;
  readonly mark: string | undefined;
}

/** One transfer as it is; several through Multicall3, where one that fails stops no other. */
export function relayedCall(asset: string, payments: readonly MarkedTransfer[]): RelayedCall {
  const calls = payments.map(({ transfer, mark }) => marked(transfer.data, mark));
  const [only, another] = calls;
  const gas = gasOf(payments.map(({ transfer }) => transfer));
  return only !== undefined && another === undefined
    ? { to: asset, data: only, gas }
    : { to: MULTICALL3, data: aggregateCall(asset, calls), gas };
}

export function gasOf(transfers: readonly Transfer[]): bigint {
  const [only, another] = transfers;
  return only !== undefined && another === undefined ? only.gas : batchGas(transfers);
}

function batchGas({ length }: readonly Transfer[]): bigint {
  return BATCH_GAS + EACH_GAS * BigInt(length);
}

/**
 * `behind`: the transfer passes alone and fails behind the others, so it has to wait until those
 * are in a block: one payer may have signed more than it has.
 */
export type JointVerdict = RailVerdict | { readonly kind: 'behind' };

/** The success of each transfer of a batch, or the cause that the node told none. */
type BatchResult = readonly boolean[] | { readonly kind: 'unavailable'; readonly cause: string };

export type Simulation = ReturnType<typeof createSimulation>;

/**
 * Simulates transfers in the newest block. One that fails in the batch is simulated alone too,
 * which explains it.
 * @param relayer the account that would send them
 */
export function createSimulation(client: Client, asset: string, relayer: string) {
  let multicall: Promise<boolean> | undefined;
  /** Whether Multicall3 is there: asked until the node answers once. False while it does not. */
  const canBatch = (): Promise<boolean> => {
    multicall ??= getCode(client, { address: MULTICALL3 }).then(
      (code) => code !== undefined,
      () => {
        multicall = undefined;
        return false;
      },
    );
    return multicall;
  };
  const alone = (transfer: Transfer): Promise<RailVerdict> => simulate(client, { ...transfer, asset, relayer });
  /** Undefined where the node cannot simulate all of them in one call. */
  const together = async (transfers: readonly Transfer[]): Promise<BatchResult | undefined> => {
    const data = aggregateCall(
      asset,
      transfers.map((transfer) => transfer.data),
    );
    const call = { from: lowerHex(relayer), to: lowerHex(MULTICALL3), data, gas: numberToHex(batchGas(transfers)) };
    try {
      return resultsOf(await client.request({ method: 'eth_call', params: [call, 'latest'] }), transfers.length);
    } catch (error) {
      // A node that is silent or limits its callers is not asked a hundred times more.
      return cannotForAll(error) ? undefined : { kind: 'unavailable', cause: nodeFailure(error) };
    }
  };
  /** Resolves to a promise for each transfer: those that pass must not wait. Never rejects. */
  const simulateJointly = async (
    transfers: readonly Transfer[],
  ): Promise<readonly (JointVerdict | Promise<JointVerdict>)[]> => {
    // The code of a payer's contract may use up the gas of all.
    const plain = transfers.filter(({ signedBy }) => signedBy === 'account');
    const result = plain.length > 1 && (await canBatch()) ? await together(plain) : undefined;
    const at = new Map(plain.map((transfer, place) => [transfer, place]));
    return transfers.map(async (transfer): Promise<JointVerdict> => {
      const place = at.get(transfer);
      if (place === undefined || result === undefined) return alone(transfer);
      if ('kind' in result) return result;
      if (result[place] === true) return { kind: 'valid' };
      const verdict = await alone(transfer);
      return verdict.kind === 'valid' ? { kind: 'behind' } : verdict;
    });
  };
  return { canBatch, simulate: simulateJointly };
}

/** Undefined for bytes that are no results, such as those of a node that lacks Multicall3. */
function resultsOf(returned: string, count: number): readonly boolean[] | undefined {
  try {
    const passed = succeeded(returned);
    return passed.length === count ? passed : undefined;
  } catch {
    return undefined;
  }
}

/** The node answered readably that it does not do so much in one call. */
function cannotForAll(error: unknown): boolean {
  if (error instanceof OversizedAnswer || error instanceof OversizedRequest) return true;
  return error instanceof RpcRefusal && !limitsCaller(error);
}

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
interface Simulated {
  readonly asset: string;
  readonly relayer: string;
  readonly data: Hex;
  /** A cap, so that a payer's contract uses no more gas in the simulation than on chain. */
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
}

/** Simulates the transfer in the newest block, as the relayer would send it. */
async function simulate(client: Client, simulation: Simulated): Promise<RailVerdict> {
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

/** The nonce decides first, the text next, the balance last: only texts differ between tokens. */
async function explain(client: Client, { asset, authorization }: Simulated, text: string): Promise<RailVerdict> {
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
