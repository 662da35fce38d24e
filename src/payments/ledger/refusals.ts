/** The provider's refusals, which a ledger remembers after their reservations are deleted. */

import type { PaymentRecord, Refusal, Reservation, Reserve } from './ledger.ts';
import type { Outcome } from './table.ts';

/** Most refusals that are remembered, 120 bytes each; the one that ends first goes. */
export const MAX_REFUSALS = 20_000;

/** When a refusal is forgotten. `now` is the store's clock, milliseconds. */
export function refusalEnds({ until, atMostMs }: Refusal, now: number): number {
  return Math.min(until, now + atMostMs);
}

/** A reservation by the table, unless there is no record and the provider refused this proof. */
export function unlessRefused(
  outcome: Outcome<Reservation>,
  before: PaymentRecord | undefined,
  { proof }: Reserve,
  reasonOf: (proof: string) => string | undefined,
): Outcome<Reservation> {
  const reason = before === undefined && proof !== undefined ? reasonOf(proof) : undefined;
  return reason === undefined ? outcome : { answer: { kind: 'refused', reason }, record: undefined, changed: false };
}
