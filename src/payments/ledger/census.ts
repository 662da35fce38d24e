import type { PaymentState } from './ledger.ts';
import { ANSWER_KEPT } from './payment-receipt.ts';

/** How many payments are looked at one by one; of more than these only the sum is known. */
export const CENSUS_LIMIT = 1_000;

/** What stands open in the ledger of a merchant, over all of his gateways. */
export interface PaymentCensus {
  /** Payments that are not at an end. */
  readonly open: number;
  /** Of the first 1,000 of them: settlements whose outcome nobody is finding out at this moment. */
  readonly uncertain: number;
  /** Of the first 1,000 of them: paid, and neither delivered nor kept for the buyer to fetch. */
  readonly undelivered: number;
}

/** An open payment as it is counted. */
export interface OpenPayment {
  readonly state: PaymentState;
  /** Milliseconds of the store's clock. */
  readonly leaseUntil: number;
  /** Of a delivery: how far it came. */
  readonly reason?: string;
}

/**
 * Counts open payments by what an operator should know of them. `now` is the store's clock,
 * milliseconds.
 */
export function countOpen(payments: Iterable<OpenPayment>, now: number): Omit<PaymentCensus, 'open'> {
  let uncertain = 0;
  let undelivered = 0;
  for (const { state, leaseUntil, reason } of payments) {
    if (state === 'settling' && leaseUntil <= now) uncertain += 1;
    if (state === 'undelivered' && reason !== ANSWER_KEPT) undelivered += 1;
  }
  return { uncertain, undelivered };
}
