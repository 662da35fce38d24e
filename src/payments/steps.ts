/** The named steps of a paid call, which tracing and tests follow over a diagnostics channel. */

import { channel } from 'node:diagnostics_channel';

/**
 * The steps in order. A subscriber of `acg.payment` gets `{ step, payId }` at once, in the same
 * turn, so a test can end the process exactly there.
 */
export type PaymentStep =
  | 'reserved'
  | 'verified'
  | 'working'
  | 'worked'
  | 'settling'
  | 'sending'
  | 'signed'
  | 'answered'
  | 'settled'
  | 'forwarding'
  | 'relaying'
  | 'relayed'
  | 'delivered';

export const PAYMENT_CHANNEL = 'acg.payment';

const payments = channel(PAYMENT_CHANNEL);

/** Reports that a paid call has passed a step; without a subscriber it costs a comparison. */
export function passed(step: PaymentStep, payId: string): void {
  if (payments.hasSubscribers) payments.publish({ step, payId });
}
