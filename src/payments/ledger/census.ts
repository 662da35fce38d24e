/** Counts the open payments of a merchant, for the metrics; the stores read them. */

import type { PaymentState } from './ledger.ts';
import { ANSWER_KEPT } from './payment-receipt.ts';

/** Payments that are looked at one by one; of more than these only the sum is known. */
export const CENSUS_LIMIT = 1_000;

/** The open payments of a merchant, over all gateways. */
export interface PaymentCensus {
  /** Payments that have not ended. */
  readonly open: number;
  /** Of the first 1,000: settlements whose outcome no attempt is asking for now. */
  readonly uncertain: number;
  /** Of the first 1,000: paid, and neither delivered nor kept for the buyer. */
  readonly undelivered: number;
}

/** An open payment as it is counted. */
interface OpenPayment {
  readonly state: PaymentState;
  /** Milliseconds of the store's clock. */
  readonly leaseUntil: number;
  /** Of a delivery: its progress. */
  readonly reason?: string;
}

/** `now`: the store's clock, milliseconds. */
export function countOpen(payments: Iterable<OpenPayment>, now: number): Omit<PaymentCensus, 'open'> {
  let uncertain = 0;
  let undelivered = 0;
  for (const { state, leaseUntil, reason } of payments) {
    if (state === 'settling' && leaseUntil <= now) uncertain += 1;
    if (state === 'undelivered' && reason !== ANSWER_KEPT) undelivered += 1;
  }
  return { uncertain, undelivered };
}
