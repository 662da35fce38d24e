import type { ReadBack } from '../../checkouts/idempotency.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import type { Outcome } from './outcome.ts';
import { validatorOf } from './validation/validator.ts';

/** The operations that move money or end a session, and the status that tells they happened (acp 12.5). */
const DONE_AT: Readonly<Partial<Record<Operation, string>>> = {
  completeCheckoutSession: 'completed',
  cancelCheckoutSession: 'canceled',
};
/** The merchant is at the session. */
const BUSY: ReadonlySet<unknown> = new Set(['in_progress', 'complete_in_progress']);

/** Whether the session tells what became of an operation. */
export function readsBack(operation: Operation): boolean {
  return DONE_AT[operation] !== undefined;
}

/**
 * What a session that was read tells of an operation whose end is unknown. A completed one without its order cannot be given as the
 * answer of a complete, and is as good as not read.
 */
export function readBackOf(operation: Operation, read: Outcome): ReadBack {
  if (read.kind !== 'document') return { kind: 'unreadable' };
  const { document, body } = read;
  const { status } = document;
  if (BUSY.has(status)) return { kind: 'in_progress' };
  if (status !== DONE_AT[operation]) return { kind: 'not_happened' };
  const complete = operation === 'completeCheckoutSession';
  if (complete && validatorOf('strict', 'CheckoutSessionWithOrder')(document) !== undefined)
    return { kind: 'unreadable' };
  return { kind: 'happened', answer: { status: OPERATION_RULES[operation].success, body } };
}
