/** Simulates many transfers in one call, in the order in which a batch makes them. */

import type { Client } from 'viem';
import { numberToHex } from 'viem/utils';
import type { RailVerdict } from '../../rail.ts';
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

/** A transfer that fails in the batch is simulated alone too, which explains it. */
export function createJointSimulation({ client, asset, relayer, canBatch }: JointSimulationDeps): JointSimulation {
  const alone = (transfer: Transfer): Promise<RailVerdict> => simulate(client, { ...transfer, asset, relayer });
  const together = async (transfers: readonly Transfer[]): Promise<readonly boolean[] | undefined> => {
    const data = aggregateCall(
      asset,
      transfers.map((transfer) => transfer.data),
    );
    const call = { from: lowerHex(relayer), to: lowerHex(MULTICALL3), data, gas: numberToHex(batchGas(transfers)) };
    try {
      const passed = succeeded(await client.request({ method: 'eth_call', params: [call, 'latest'] }));
      return passed.length === transfers.length ? passed : undefined;
    } catch {
      // What the node cannot do for all, each asks for itself, and reports its own failure.
      return undefined;
    }
  };
  return async function simulateJointly(transfers) {
    // The code of a payer's contract may use up the gas of all.
    const plain = transfers.filter(({ signedBy }) => signedBy === 'account');
    const passed = plain.length > 1 && (await canBatch()) ? await together(plain) : undefined;
    const passes = new Map(plain.map((transfer, at) => [transfer, passed?.[at]]));
    return transfers.map(async (transfer): Promise<JointVerdict> => {
      const jointly = passes.get(transfer);
      if (jointly === true) return { kind: 'valid' };
      const verdict = await alone(transfer);
      return jointly === false && verdict.kind === 'valid' ? { kind: 'behind' } : verdict;
    });
  };
}
