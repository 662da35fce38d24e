import type { PreparedCall, ProvenCall } from '../call.ts';
import { recordRefusal } from '../payments/closing.ts';
import { NothingOwed } from '../payments/nothing-owed.ts';
import { type Offer, refusedResponse } from '../payments/offers.ts';
import { refusalSentence } from '../payments/refusal-words.ts';

/**
 * Answers 402 with a fresh challenge. This is the only place that does, so the promise of CONTRACT 4.3 has one door, and the witness
 * is its key: a call that brought a proof gets no challenge without it. `owed` is undefined for a call without a proof.
 * @throws Error when the witness is missing or forged: a bug, which must not become a second payment.
 */
export function askForPayment(call: PreparedCall | ProvenCall, offer: Offer, owed: NothingOwed | undefined): void {
  const { journal, requestId, presenter } = call;
  if (owed === undefined ? call.proof.kind !== 'none' : !NothingOwed.is(owed))
    throw new Error('a challenge for a proof that may still move money');
  if (owed !== undefined && !owed.recorded) recordRefusal(journal, owed.reason, owed.transaction);
  journal.record('payment.required', { paymentProvider: 'x402' });
  journal.flush();
  const expiresAt = new Date(Date.now() + offer.requirements.maxTimeoutSeconds * 1_000).toISOString();
  if (owed === undefined) {
    presenter.paymentRequired(offer.challenge.fresh(requestId, expiresAt));
    return;
  }
  const { phase, reason, transaction } = owed;
  const code = phase === 'settle' ? 'PAYMENT_SETTLEMENT_FAILED' : 'PAYMENT_INVALID';
  const message = refusalSentence(reason);
  const challenge = offer.challenge.refused(requestId, expiresAt, { code, reason, message, retryable: false });
  presenter.paymentRequired(
    challenge,
    phase === 'settle' ? refusedResponse(offer, requestId, reason, transaction) : undefined,
  );
}

/** The offer of a resource that has a price: one exists for each, or the gateway would not have started. */
export function offerOf(offers: ReadonlyMap<string, Offer>, resourceId: string): Offer {
  const offer = offers.get(resourceId);
  if (offer === undefined) throw new Error(`no offer for ${resourceId}`);
  return offer;
}
