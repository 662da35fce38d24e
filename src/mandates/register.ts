/**
 * What one accepted presentation uses up. Times: unix seconds of the clock that the mandate was checked with; a store keeps each entry
 * for the difference to `at`, on its own clock. Units: minor units of the currency as a decimal string, at most 2^53 - 1.
 */
export interface MandateClaim {
  /** When it was presented. */
  readonly at: number;
  /** What may be used once: `m:` and the id of a closed mandate, `j:` and the id of a checkout. */
  readonly once: readonly string[];
  /** Until when those are remembered: after it no check of times can pass (ap2.md 9 and 10). */
  readonly onceUntil: number;
  /** The open mandates that it was made under. */
  readonly open: readonly OpenMandateUse[];
}

/** One use of an open mandate. */
export interface OpenMandateUse {
  readonly id: string;
  /** Until when its uses are remembered: its end and the skew. */
  readonly until: number;
  /** Undefined: it may be used once. */
  readonly recurrence: Recurrence | undefined;
}

/** What a mandate allows that may be used again. */
export interface Recurrence {
  /** Of this use. */
  readonly units: string;
  readonly budgetUnits: string;
  readonly maxOccurrences: number | undefined;
  /** When the present calendar period began; undefined: uses need not be apart. */
  readonly periodStart: number | undefined;
}

/** Why a mandate that is right cannot be used now (ap2.md 8). */
export type UseRefusal =
  | 'replayed'
  | 'open_mandate_spent'
  | 'budget_exceeded'
  | 'recurrence_exceeded'
  | 'recurrence_too_soon';

export type Used = { readonly kind: 'reserved' } | { readonly kind: 'refused'; readonly reason: UseRefusal };

/**
 * The register of uses (ap2.md 10). A paid call never comes here: its claim lies in the payment record, is reserved in the same write and
 * shares the payment's fate (settled commits it, a deleted or refused payment releases it, an uncertain one holds it). This port is for
 * calls that pay nothing.
 */
export interface MandateRegister {
  /**
   * Checks everything, then writes everything, in one write. Asking again with the same name answers the same until it is finished.
   * @throws StoreError, RangeError a bug of the caller
   */
  reserve(name: string, claim: MandateClaim): Promise<Used>;
  /**
   * `commit`: it was used. `release`: certainly not. Whoever does neither leaves it uncertain: it stays reserved. Finishing twice changes
   * nothing, and what was committed is not released. @throws StoreError
   */
  finish(name: string, how: 'commit' | 'release'): Promise<void>;
}
