/** Gauges of the rail: the relayer's gas, and the state of its chain node. */

import { CHAIN_FAULTS, type ChainState } from '../../payments/rail.ts';
import type { PaymentRail } from '../../payments/x402/wire/types.ts';
import type { Metrics } from './metrics.ts';

/** Shows the gauges that this rail has. */
export function showRail(
  { gauge }: Pick<Metrics, 'gauge'>,
  { transfersLeft, chainState }: Pick<PaymentRail, 'transfersLeft' | 'chainState'>,
): void {
  if (transfersLeft !== undefined) showGas(gauge, transfersLeft);
  if (chainState !== undefined) showChain(gauge, chainState);
}

function showChain(gauge: Metrics['gauge'], chainState: () => ChainState): void {
  gauge({
    name: 'acg_chain_fault',
    help:
      'What is wrong with the chain node of payments.x402.rpcUrl, 0 or 1. stall: no new block; clock: the clock of this machine is not ' +
      'that of the blocks; missing: transactions without their logs. Paid calls are refused before any money moves (503).',
    label: 'cause',
    read() {
      const { faults } = chainState();
      return Object.fromEntries(
        CHAIN_FAULTS.map((cause) => [cause, faults.some(({ kind }) => kind === cause) ? 1 : 0]),
      );
    },
  });
  gauge({
    name: 'acg_chain_head_age_seconds',
    help: 'Since the chain node first showed its newest block. It also grows while a chain that makes blocks on demand is idle.',
    read() {
      const { headAgeMs } = chainState();
      return headAgeMs === undefined ? undefined : headAgeMs / 1_000;
    },
  });
}

function showGas(gauge: Metrics['gauge'], transfersLeft: () => number | undefined): void {
  gauge({
    name: 'acg_relayer_transfers_left',
    help:
      'Payments that the gas of the relayer lasts for, at the most that each may cost now. At 0 paid calls are refused before any ' +
      'money moves (503 GATEWAY_BUSY, relayer_unfunded): send gas to its address.',
    read: () => transfersLeft(),
  });
}
