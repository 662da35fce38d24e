import type { PaymentRail } from '../payments/x402/rail.ts';
import type { Metrics } from './metrics.ts';

/** Shows at `/metrics` what a rail knows of itself beside its calls. */
export function showRail({ gauge }: Pick<Metrics, 'gauge'>, rail: Pick<PaymentRail, 'transfersLeft'>): void {
  const { transfersLeft } = rail;
  // Only the local lane pays gas.
  if (transfersLeft === undefined) return;
  gauge({
    name: 'acg_relayer_transfers_left',
    help:
      'Payments that the gas of the relayer lasts for, at the most that each may cost now. At 0 paid calls are refused before any ' +
      'money moves (503 GATEWAY_BUSY, relayer_unfunded): send gas to its address.',
    read: () => transfersLeft(),
  });
}
