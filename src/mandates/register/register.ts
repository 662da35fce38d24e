/** The register of mandate uses: its port, and the claims that paid and free calls make on it. */

/**
 * What one accepted presentation uses up. Times: unix seconds of the clock that the mandate was
 * checked with; a store keeps each entry for the difference to `at`, on its own clock. Units: minor
 * units of the currency as a decimal string, at most 2^53 - 1.
 */
export interface MandateClaim {
  /** When it was presented. */
  readonly at: number;
  /** How old its checkout was then, seconds, to the millisecond where known; undefined: unknown. */
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
 * used before that is refused: an emptied store would otherwise accept it a second time. The two
 * times differ because a first start and a loss look alike in the store:
 *
 * - No checkout from before `born` is accepted. A first start refuses none, because a register
 *   begins before the gateway hands out its first checkout. After a loss a buyer makes a mandate
 *   for a fresh checkout. A closed mandate is refused together with its checkout.
 * - No open mandate from before `openFrom` is accepted. Open mandates may be older than a gateway
 *   that starts, so at a first start it is 0. A gateway that knows of an earlier register sets it
 *   to `born`: until those mandates end, what was spent under them is unknown.
 */
export interface RegisterEpoch {
  /** 0: nothing was ever forgotten. */
  readonly born: number;
  /** 0: no register was lost, or the operator accepts older open mandates all the same. */
  readonly openFrom: number;
}

/**
 * Why a right mandate cannot be used now (ap2 8). What may have been used before a loss of data
 * gets the reason of what was used.
 */
export type UseRefusal =
  | 'replayed'
  | 'open_mandate_spent'
  | 'budget_exceeded'
  | 'recurrence_exceeded'
  | 'recurrence_too_soon';

export type Used = { readonly kind: 'reserved' } | { readonly kind: 'refused'; readonly reason: UseRefusal };

/**
 * The register of uses (ap2 10) for calls that pay nothing. A paid call keeps its claim in the
 * payment record, which reserves it in the same write: a settled payment commits it, a deleted or
 * refused one releases it, an uncertain one holds it.
 */
export interface MandateRegister {
  /**
   * Checks everything, then writes everything, in one write. The same name gets the same answer
   * until it is finished.
   * @throws StoreError, RangeError a bug of the caller
   */
  reserve(name: string, claim: MandateClaim): Promise<Used>;
  /**
   * `commit`: it was used. `release`: certainly not. Until either is called it stays reserved.
   * Finishing twice changes nothing, and what was committed is not released.
   * @throws StoreError
   */
  finish(name: string, how: 'commit' | 'release'): Promise<void>;
}
