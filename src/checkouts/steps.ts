import { channel } from 'node:diagnostics_channel';
import type { KeyedOperation } from './operations.ts';

/**
 * The steps of a keyed call, in order. Whoever subscribes to the diagnostics channel `acg.checkout`
 * is told of each one at once, in the same turn: `{ step, operation }`. The tests that end the
 * process exactly there use it (acp 12.9).
 */
export type CheckoutStep =
  | 'before_claim'
  | 'after_claim'
  /** The session was read back. */
  | 'after_read'
  | 'before_send'
  | 'after_merchant'
  /** It is written down whose the session is that the merchant opened. */
  | 'after_own'
  | 'after_finish';

export const CHECKOUT_CHANNEL = 'acg.checkout';

const checkouts = channel(CHECKOUT_CHANNEL);

/** Says that a keyed call has passed a step; costs a comparison when nobody listens. */
export function passed(step: CheckoutStep, operation: KeyedOperation): void {
  if (checkouts.hasSubscribers) checkouts.publish({ step, operation });
}
