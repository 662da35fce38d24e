/**
 * Publishes the steps of keyed calls, so that tests can end a process at each of them (acp 12.9).
 */

import { channel } from 'node:diagnostics_channel';
import type { KeyedOperation } from './operations.ts';

/** In order. Subscribers of the channel get each one in the same turn: `{ step, operation }`. */
export type CheckoutStep =
  | 'before_claim'
  | 'after_claim'
  /** The session was read back. */
  | 'after_read'
  | 'before_send'
  | 'after_merchant'
  /** The owner of the session that the backend opened is stored. */
  | 'after_own'
  | 'after_finish';

export const CHECKOUT_CHANNEL = 'acg.checkout';

const checkouts = channel(CHECKOUT_CHANNEL);

/** Publishes a step; costs a comparison without subscribers. */
export function passed(step: CheckoutStep, operation: KeyedOperation): void {
  if (checkouts.hasSubscribers) checkouts.publish({ step, operation });
}
