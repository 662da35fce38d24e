import { Counter, type Registry } from 'prom-client';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';

/** A token on a chain, as our own offers name it. */
type Money = Pick<PaymentRecord, 'network' | 'asset'>;

/** What each paid resource is paid in, by resource id. */
export type PricedIn = ReadonlyMap<string, { readonly requirements: Money }>;

/**
 * Counts the money of settled payments. Resources come from the catalogue, networks and assets from our own offers: no caller can make
 * a new time series. Sums are whole numbers of any size and become doubles only when somebody asks: a double that has grown large
 * would swallow small amounts for good.
 */
export function revenueMetric(
  registry: Registry,
  offers: PricedIn,
): (payment: Money & Pick<PaymentRecord, 'resourceId' | 'units' | 'recovered'>) => void {
  const sums = new Map<string, { readonly labels: Money & { readonly resource: string }; units: bigint }>();
  const sumOf = (resource: string, { network, asset }: Money): { units: bigint } => {
    const key = `${network} ${asset} ${resource}`;
    const sum = sums.get(key) ?? { labels: { resource, network, asset }, units: 0n };
    sums.set(key, sum);
    return sum;
  };
  // From nought, or the first sale of each resource would be no growth.
  for (const [resource, { requirements }] of offers) sumOf(resource, requirements);
  new Counter({
    name: 'acg_settled_units_total',
    help:
      'Money that this process took, in atomic units of the asset (1 USDC is 1,000,000). What was found again on the chain after ' +
      'the store had lost it is left out. Above 2^53 a sample is the nearest double: the books are the receipts.',
    labelNames: ['resource', 'network', 'asset'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, units } of sums.values()) this.inc(labels, Number(units));
    },
  });
  return function settled(payment) {
    if (payment.recovered !== undefined) return;
    const resource = offers.has(payment.resourceId) ? payment.resourceId : '';
    sumOf(resource, payment).units += BigInt(payment.units);
  };
}
