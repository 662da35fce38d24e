/** Simulates many transfers in one call, in the order in which a batch makes them. */

import type { Client } from 'viem';
import { numberToHex } from 'viem/utils';
import type { RailVerdict } from '../../rail.ts';
import { OversizedAnswer } from '../chain/http-json.ts';
import { limitsCaller, nodeFailure, OversizedRequest, RpcRefusal } from '../chain/rpc.ts';
import { lowerHex } from '../evm/abi-words.ts';
import { aggregateCall, MULTICALL3, succeeded } from '../evm/multicall.ts';
import { simulate } from './simulation.ts';
import { batchGas, type Transfer } from './transfer.ts';

/**
 * `behind`: the transfer passes alone and fails behind the others, so it has to wait until those
 * are in a block: one payer may have signed more than it has.
 */
export type JointVerdict = RailVerdict | { readonly kind: 'behind' };

/**
 * Simulates transfers in the newest block, as the relayer would send them. Those that pass are
 * known first: the others must not delay them. Never rejects.
 */
export type JointSimulation = (
  transfers: readonly Transfer[],
) => Promise<readonly (JointVerdict | Promise<JointVerdict>)[]>;

interface JointSimulationDeps {
  readonly client: Client;
  readonly asset: string;
  /** The account that would send them. */
  readonly relayer: string;
  readonly canBatch: () => Promise<boolean>;
}

/** Whether each transfer of a batch passes, or why the node told nothing of any. */
type BatchResult = readonly boolean[] | { readonly kind: 'unavailable'; readonly cause: string };

/** A transfer that fails in the batch is simulated alone too, which explains it. */
export function createJointSimulation({ client, asset, relayer, canBatch }: JointSimulationDeps): JointSimulation {
  const alone = (transfer: Transfer): Promise<RailVerdict> => simulate(client, { ...transfer, asset, relayer });
  /** Undefined where the node cannot do it for all of them. */
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
  return async function simulateJointly(transfers) {
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
