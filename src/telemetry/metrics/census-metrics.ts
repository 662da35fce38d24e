/** Gauges of the open payments in the store. */

import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { PaymentCensus } from '../../payments/ledger/census.ts';
import { inTime } from '../../time/time.ts';

/** Between two counts, milliseconds: all scrapes in between share one. */
const COUNT_EVERY_MS = 5_000;
/** Longest wait for a count, milliseconds; a scrape without these gauges is better than none. */
const COUNT_DEADLINE_MS = 300;

/** Counted when scraped. Every gateway of the merchant shows the same. */
export function censusMetrics(
  registry: Registry,
  census: () => Promise<PaymentCensus>,
  now: () => number = () => performance.now(),
): void {
  const registers = [registry];
  const failures = new Counter({
    name: 'acg_census_failures_total',
    help: 'Scrapes without the gauges of open payments, because the store did not count them within 300 ms.',
    registers,
  });
  const counts = memoised(census, now);
  const gauge = (name: string, help: string, of: (found: PaymentCensus) => number): void => {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const found = await counts();
        if (found !== undefined) this.set(of(found));
        // No value is better than an old one or a 0.
        else this.remove();
      },
    });
  };
  gauge(
    'acg_payments_open',
    'Payments that are not at an end, over all gateways of this merchant.',
    ({ open }) => open,
  );
  gauge(
    'acg_payments_uncertain',
    'Settlements whose outcome no process is finding out at this moment, of the first 1,000 open payments. More than a moment ' +
      'above 0: the chain node or the facilitator does not answer.',
    ({ uncertain }) => uncertain,
  );
  gauge(
    'acg_payments_undelivered',
    'Paid, and neither delivered nor kept for the buyer to fetch, of the first 1,000 open payments. The backend or the gateway ' +
      'failed, or the buyer left too early: the same proof collects, or a refund is due.',
    ({ undelivered }) => undelivered,
  );

  function memoised(
    count: () => Promise<PaymentCensus>,
    clock: () => number,
  ): () => Promise<PaymentCensus | undefined> {
    let asked: Promise<PaymentCensus | undefined> | undefined;
    let askedAt = 0;
    return () => {
      if (asked !== undefined && clock() - askedAt < COUNT_EVERY_MS) return asked;
      askedAt = clock();
      const counted = inTime(count(), COUNT_DEADLINE_MS, () => undefined).catch(() => undefined);
      asked = counted.then((found) => {
        if (found === undefined) failures.inc();
        return found;
      });
      return asked;
    };
  }
}
