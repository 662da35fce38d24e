/** The witness that a 402 after a proof needs (contract 4.3); challenge.ts asks for it. */

import type { PaymentRecord } from '../ledger/ledger.ts';

/** The ledger's answer about a proof that has no record, or none any more. */
export interface NoRecord {
  readonly kind: 'none';
}

interface Facts {
  readonly reason: string;
  readonly fault?: string | undefined;
  readonly phase: 'verify' | 'settle';
  readonly transaction: string | undefined;
  readonly recorded: boolean;
  readonly answerOf?: string | undefined;
}

/**
 * The 402 promise as a type. A 402 makes every client sign a new payment, so none may answer a
 * proof that can still move money. Challenges after a proof are made from this witness only, and
 * there are three ways to get it: no record of the authorization exists, its reservation was
 * deleted before anything was sent, or the ledger holds the evidence that it is worthless.
 */
export class SafeToRechallenge {
  /** Token of contract 1.3. */
  readonly reason: string;
  /** The fault and its remedy, where the local checks know more than the reason. */
  readonly fault: string | undefined;
  /** `settle`: a settlement began, and the ledger has its end. */
  readonly phase: 'verify' | 'settle';
  readonly transaction: string | undefined;
  /** Its event `payment.rejected` was written with the transition. */
  readonly recorded: boolean;
  /** A payment whose answer waits for the buyer's next proof (`settle: after`). */
  readonly answerOf: string | undefined;
  /** Makes the type nominal: an object of the same shape is no witness. */
  readonly #witness = true;

  private constructor(facts: Facts) {
    this.reason = facts.reason;
    this.fault = facts.fault;
    this.phase = facts.phase;
    this.transaction = facts.transaction;
    this.recorded = facts.recorded;
    this.answerOf = facts.answerOf;
  }

  /** Nothing was sent, and no record is left. */
  static #withoutRecord(reason: string, answerOf: string | undefined, fault?: string): SafeToRechallenge {
    return new SafeToRechallenge({ reason, fault, phase: 'verify', transaction: undefined, recorded: false, answerOf });
  }

  /**
   * The local checks refused a proof, and it has no record. `answerOf`: an earlier payment, named
   * by the proof's token, whose answer still waits.
   */
  static unreserved(
    _answer: NoRecord,
    { reason, answerOf, fault }: Pick<Facts, 'reason' | 'answerOf' | 'fault'>,
  ): SafeToRechallenge {
    return SafeToRechallenge.#withoutRecord(reason, answerOf, fault);
  }

  /**
   * The ledger answered that the reservation is gone; it deletes only reservations. `answerOf`: the
   * payment whose answer the call was to buy, and which still waits.
   */
  static discarded(_answer: { readonly kind: 'gone' }, reason: string, answerOf?: string): SafeToRechallenge {
    return SafeToRechallenge.#withoutRecord(reason, answerOf);
  }

  /**
   * The ledger has no record and remembers that the provider refused this very proof. `answerOf`:
   * the payment that the proof's token names, whose answer still waits.
   */
  static refusedBefore(
    { reason }: { readonly kind: 'refused'; readonly reason: string },
    answerOf?: string,
  ): SafeToRechallenge {
    return SafeToRechallenge.#withoutRecord(reason, answerOf);
  }

  /**
   * `byBuyer`: the call shows the secret of this payment, so it may learn of an answer that waits.
   * @throws Error for a record that is not refused, or whose authorization has paid: a bug, which
   * must not cost a new payment
   */
  static refused(record: PaymentRecord, recorded: boolean, byBuyer = false): SafeToRechallenge {
    const { state, evidence, reason = 'payment_refused', transaction, answered, payId } = record;
    if (state !== 'refused' || evidence === undefined || evidence === 'unclaimed')
      throw new Error(`no 402 for a payment that is ${state}`);
    const answerOf = byBuyer && answered !== undefined ? { answerOf: payId } : {};
    return new SafeToRechallenge({ reason, phase: 'settle', transaction, recorded, ...answerOf });
  }

  /** Whether a value is a witness, whatever its declared type says. */
  static is(value: object): boolean {
    return #witness in value;
  }
}
