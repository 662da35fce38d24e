import type { PreparedCall, ProvenCall } from '../call.ts';
import { recordRefusal } from '../payments/closing.ts';
import { type Offer, refusedResponse } from '../payments/offers.ts';

/** Why a proof was refused (CONTRACT 1.3); `settle` when the settlement itself said no. */
export interface Refusal {
  readonly phase: 'verify' | 'settle';
  readonly reason: string;
  readonly transaction?: string;
  /** Its event went with the transition already. */
  readonly recorded?: boolean;
}

/**
 * Answers 402 with a fresh challenge. This is the only place that does, so the promise of CONTRACT 4.3 has one door: whoever comes
 * here knows that no authorization of this call can move money any more.
 */
export function askForPayment(call: PreparedCall | ProvenCall, offer: Offer, refusal?: Refusal): void {
  const { journal, requestId, presenter } = call;
  if (refusal !== undefined && refusal.recorded !== true) recordRefusal(journal, refusal.reason, refusal.transaction);
  journal.record('payment.required', { paymentProvider: 'x402' });
  journal.flush();
  const expiresAt = new Date(Date.now() + offer.requirements.maxTimeoutSeconds * 1_000).toISOString();
  if (refusal === undefined) {
    presenter.paymentRequired(offer.challenge.fresh(requestId, expiresAt));
    return;
  }
  const code = refusal.phase === 'settle' ? 'PAYMENT_SETTLEMENT_FAILED' : 'PAYMENT_INVALID';
  const challenge = offer.challenge.refused(requestId, expiresAt, {
    code,
    reason: refusal.reason,
    message: `The payment proof was refused: ${refusal.reason}.`,
    retryable: false,
  });
  presenter.paymentRequired(
    challenge,
    refusal.phase === 'settle' ? refusedResponse(offer, requestId, refusal.reason, refusal.transaction) : undefined,
  );
}

/** The offer of a resource that has a price: one exists for each, or the gateway would not have started. */
export function offerOf(offers: ReadonlyMap<string, Offer>, resourceId: string): Offer {
  const offer = offers.get(resourceId);
  if (offer === undefined) throw new Error(`no offer for ${resourceId}`);
  return offer;
}
