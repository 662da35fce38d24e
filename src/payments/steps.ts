import { channel } from 'node:diagnostics_channel';

/**
 * The steps of a paid call, in order. Whoever subscribes to the diagnostics channel `acg.payment`
 * is told of each one at once, in the same turn: `{ step, payId }`. Tracing uses it, and so do the
 * tests that end the process exactly there.
 */
export type PaymentStep =
  | 'reserved'
  | 'verified'
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

/** Says that a paid call has passed a step; costs a comparison when nobody listens. */
export function passed(step: PaymentStep, payId: string): void {
  if (payments.hasSubscribers) payments.publish({ step, payId });
}
