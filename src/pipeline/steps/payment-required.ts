import type { MandateService } from '../../mandates/mandate-service.ts';
import { recordRefusal } from '../../payments/settlement/record-outcome.ts';
import { refusalSentence } from '../../payments/settlement/refusal-words.ts';
import { SafeToRechallenge } from '../../payments/settlement/safe-to-rechallenge.ts';
import { whatIsBought } from '../../payments/settlement/terms.ts';
import { needsMandate } from '../../payments/x402/wire/offer.ts';
import { type Offer, refusedResponse } from '../../payments/x402/wire/offers.ts';
import type { PreparedCall, ProvenCall } from '../call.ts';
import { paidPurchase } from './mandate-purchase.ts';

/**
 * Answers 402 with a fresh challenge. This is the only place that does, so the promise of contract 4.3 has one door, and the witness
 * is its key: a call that brought a proof gets no challenge without it. `owed` is undefined for a call without a proof. Where a mandate
 * is needed too, the challenge says which (contract 5).
 * @throws Error when the witness is missing or forged: a bug, which must not become a second payment.
 */
export function requirePayment(
  call: PreparedCall | ProvenCall,
  offer: Offer,
  owed: SafeToRechallenge | undefined,
  mandates?: MandateService,
): void {
  const { journal, requestId, responseWriter } = call;
  if (owed === undefined ? call.proof.kind !== 'none' : !SafeToRechallenge.is(owed))
    throw new Error('a challenge for a proof that may still move money');
  if (owed !== undefined && !owed.recorded) recordRefusal(journal, owed.reason, owed.transaction);
  journal.record('payment.required', { paymentProvider: 'x402' });
  journal.flush();
  const expiresAt = new Date(Date.now() + offer.requirements.maxTimeoutSeconds * 1_000).toISOString();
  const authorization =
    mandates !== undefined && needsMandate(call.resource) ? mandates.challenge(paidPurchase(call, offer)) : undefined;
  const facts = { requestId, expiresAt, token: offer.issueToken(boundTo(call)), authorization };
  if (owed === undefined) {
    responseWriter.paymentRequired(offer.challenge.fresh(facts));
    return;
  }
  const { phase, reason, transaction } = owed;
  const code = phase === 'settle' ? 'PAYMENT_SETTLEMENT_FAILED' : 'PAYMENT_INVALID';
  const message = refusalSentence(reason);
  const refusal = { code, reason, message, retryable: false } as const;
  const challenge = offer.challenge.refused(facts, refusal);
  responseWriter.paymentRequired(
    challenge,
    phase === 'settle' ? refusedResponse(offer, requestId, reason, transaction) : undefined,
  );
}

/** Inputs above this are not bound: their canonical form would cost more than all the rest of a challenge, bytes. */
const MAX_BOUND_BYTES = 16_384;

/** What a token is bound to; undefined leaves it unbound. */
function boundTo({ resource, request, input, rawInput }: PreparedCall | ProvenCall): string | undefined {
  const bytes = rawInput?.byteLength ?? JSON.stringify(input).length;
  return bytes > MAX_BOUND_BYTES ? undefined : whatIsBought(resource.id, request.method, input);
}

/** The offer of a resource that has a price: one exists for each, or the gateway would not have started. */
export function offerOf(offers: ReadonlyMap<string, Offer>, resourceId: string): Offer {
  const offer = offers.get(resourceId);
  if (offer === undefined) throw new Error(`no offer for ${resourceId}`);
  return offer;
}
