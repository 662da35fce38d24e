/**
 * What one accepted presentation uses up. Times: unix seconds of the clock that the mandate was
 * checked with; a store keeps each entry for the difference to `at`, on its own clock. Units: minor
 * units of the currency as a decimal string, at most 2^53 - 1.
 */
export interface MandateClaim {
  /** When it was presented. */
  readonly at: number;
  /**
   * How old its checkout was then, seconds, to the millisecond where that is known; undefined:
   * nobody said.
   */
  readonly age?: number | undefined;
  /** What may be used once: `m:` and the id of a closed mandate, `j:` and the id of a checkout. */
  readonly once: readonly string[];
  /** Until when those are remembered: after it no check of times can pass (ap2 9, ap2 10). */
  readonly onceUntil: number;
  /** The open mandates that it was made under. */
  readonly open: readonly OpenMandateUse[];
}

/** One use of an open mandate. */
export interface OpenMandateUse {
  readonly id: string;
  /** How old it was when it was presented, seconds; undefined: it does not say when it was made. */
  readonly age?: number | undefined;
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

/**
 * Since when a register remembers (ap2 10), milliseconds of the store's clock. What may have been
 * used before that is refused: an emptied store would otherwise take it a second time. The two
 * times differ because a first start and a loss look alike in the store:
 *
 * - No checkout from before `born` is accepted. That refuses nobody at a first start, because a
 *   register is born before the gateway hands out its first checkout; and after a loss whoever was
 *   about to pay makes a mandate for a fresh one. With its checkout every closed mandate is
 *   refused.
 * - No open mandate from before `openFrom` is accepted. Open mandates are older than a shop that
 *   starts, so at a first start it is 0; it is the time of the birth when a gateway knows that
 *   there was a register before. Until they end, nobody can tell what was spent under them.
 */
export interface RegisterEpoch {
  /** 0: nothing was forgotten, ever. */
  readonly born: number;
  /** 0: none was lost, or the operator accepts them all the same. */
  readonly openFrom: number;
}

/**
 * Why a right mandate cannot be used now (ap2 8). What may have been used before a loss of data has
 * the reason of what was used.
 */
export type UseRefusal =
  | 'replayed'
  | 'open_mandate_spent'
  | 'budget_exceeded'
  | 'recurrence_exceeded'
  | 'recurrence_too_soon';

export type Used = { readonly kind: 'reserved' } | { readonly kind: 'refused'; readonly reason: UseRefusal };

/**
 * The register of uses (ap2 10). A paid call never comes here: its claim lies in the payment
 * record, is reserved in the same write and shares the payment's fate (settled commits it, a
 * deleted or refused payment releases it, an uncertain one holds it). This port is for calls that
 * pay nothing.
 */
export interface MandateRegister {
  /**
   * Checks everything, then writes everything, in one write. Asking again with the same name
   * answers the same until it is finished.
   * @throws StoreError, RangeError a bug of the caller
   */
  reserve(name: string, claim: MandateClaim): Promise<Used>;
  /**
   * `commit`: it was used. `release`: certainly not. Whoever does neither leaves it uncertain: it
   * stays reserved. Finishing twice changes nothing, and what was committed is not released.
   * @throws StoreError
   */
  finish(name: string, how: 'commit' | 'release'): Promise<void>;
}
