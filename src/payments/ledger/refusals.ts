/** The provider's refusals, which a ledger remembers after their reservations are deleted. */

import type { PaymentRecord, Reservation, Reserve } from './ledger.ts';
import type { Outcome } from './table.ts';

/** After a refusal its buyer may sign anew, so a later copy of the proof must not be settled. */
export interface Refusal {
  /** `proofDigest`: it covers the signature, so a forged copy refuses only itself. */
  readonly proof: string;
  /** Token of contract 1.3, at most 64 characters. */
  readonly reason: string;
  /** Unix milliseconds: from here on the proof is too old anyway. */
  readonly until: number;
  /** Longest time from now, milliseconds: a proof may be valid for years. */
  readonly atMostMs: number;
}

/** Most refusals that are remembered, 120 bytes each; the one that ends first goes. */
export const MAX_REFUSALS = 20_000;
/** Ended refusals that one write deletes. */
export const SWEPT_REFUSALS = 20;

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
