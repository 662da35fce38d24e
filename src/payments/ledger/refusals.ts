import type { PaymentRecord, Reservation, Reserve } from './ledger.ts';
import type { Outcome } from './table.ts';

/**
 * A provider's refusal that is remembered although its reservation was deleted. Its buyer was asked
 * to pay and may sign anew, so a copy of the same proof that comes later must not be settled after
 * all.
 */
export interface Refusal {
  /**
   * What was refused: payId, signature and everything signed (`proofDigest`), so that a stranger's
   * bad copy refuses nobody else's good one.
   */
  readonly proof: string;
  /** Token of contract 1.3, at most 64 characters. */
  readonly reason: string;
  /** Unix milliseconds: from here on the proof is too old to be taken, whatever is remembered. */
  readonly until: number;
  /**
   * Longest time from now, milliseconds: a proof that says it lives for years must not be
   * remembered for years.
   */
  readonly atMostMs: number;
}

/**
 * Most refusals that are remembered; then the one that ends first goes. 120 bytes each, so at most
 * some megabytes of unpaid traffic.
 */
export const MAX_REFUSALS = 20_000;
/** What ended is deleted in small steps, along with what is written, entries. */
export const SWEPT_REFUSALS = 20;

/** When a refusal is forgotten. `now` is the store's clock, milliseconds. */
export function refusalEnds({ until, atMostMs }: Refusal, now: number): number {
  return Math.min(until, now + atMostMs);
}

/**
 * A reservation by the table, unless the provider refused this very proof before and nothing is
 * recorded of it.
 */
export function unlessRefused(
  outcome: Outcome<Reservation>,
  before: PaymentRecord | undefined,
  { proof }: Reserve,
  reasonOf: (proof: string) => string | undefined,
): Outcome<Reservation> {
  const reason = before === undefined && proof !== undefined ? reasonOf(proof) : undefined;
  return reason === undefined ? outcome : { answer: { kind: 'refused', reason }, record: undefined, changed: false };
}
