import type { GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { RefusedMandate } from '../../mandates/ap2/model/verdict.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import { readStoredMandate, storedMandate } from '../../mandates/stored-mandate.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { SettlementRequest, SettlementResult } from '../../payments/settlement/settlement-request.ts';
import type { Agreed } from '../../payments/x402/wire/offers.ts';
import type { Mandated, ProvenCall, UsedMandate } from '../call.ts';
import { paidPurchase } from '../steps/mandate-purchase.ts';
import { unauthorized, usedUp } from '../steps/unauthorized.ts';
import { recordVerified } from './authorize.ts';

/**
 * What a mandate adds to an order: a claim to be reserved with the payment, or a reason why nothing
 * new may be settled.
 */
export function mandateOf(
  call: Pick<ProvenCall, 'mandated' | 'refusal' | 'journal'>,
): Pick<SettlementRequest, 'refusal' | 'journal'> & { readonly terms: { readonly mandate?: string } } {
  const { mandated, refusal, journal } = call;
  if (mandated === undefined) return { terms: {}, refusal, journal };
  if (mandated.kind === 'unneeded') return { terms: {}, refusal: refusal ?? mandated.refused.reason, journal };
  return { terms: { mandate: storedMandate(mandated.mandate) }, refusal, journal: announcing(journal, mandated) };
}

/** Of a sale that failed for its mandate alone, the error; undefined for every other one. */
export function failedForMandate(
  call: ProvenCall,
  sale: SettlementResult,
  offer: Agreed,
  mandates: MandateService | undefined,
): GatewayError | undefined {
  const refused = refusedMandate(call, sale);
  if (refused === undefined) return undefined;
  if (mandates === undefined) throw new Error('a mandate was refused where none is looked at');
  return unauthorized(call, mandates, paidPurchase(call, offer), refused);
}

function refusedMandate({ mandated, refusal }: ProvenCall, sale: SettlementResult): RefusedMandate | undefined {
  if (mandated?.kind === 'accepted' && sale.kind === 'mandate_used') return usedUp(mandated.mandate, sale);
  if (mandated?.kind !== 'unneeded' || refusal !== undefined || sale.kind !== 'refused') return undefined;
  // The record that would have answered is gone, so the mandate was needed after all. Nothing is
  // wrong with the payment: no 402.
  const { phase, reason } = sale.owed;
  return phase === 'verify' && reason === mandated.refused.reason ? mandated.refused : undefined;
}

/** The mandate that a payment was admitted with, for the answer to this call. */
export function usedMandate(
  { mandated }: Pick<ProvenCall, 'mandated'>,
  record: PaymentRecord,
  mandates: MandateService | undefined,
): UsedMandate | undefined {
  const stored = record.mandate === undefined ? undefined : readStoredMandate(record.mandate);
  if (stored === undefined || mandated === undefined) return undefined;
  const { reference, referenceSdHash, mandateIssuer, checkoutIssuer, checkoutId } = stored;
  const presented = mandated.kind === 'accepted' ? mandated.mandate : mandated.refused.reference;
  // Whoever asks again with another mandate has not used that one up, and with other disclosures it
  // is not the one that was checked.
  const isSame = presented?.reference === reference && presented.referenceSdHash === referenceSdHash;
  const { requestId: id, transaction } = record;
  const order = transaction === undefined ? { id } : { id, transaction };
  return {
    summary: { method: 'ap2', reference, metadata: { mandateIssuer, checkoutIssuer, checkoutId } },
    receipt: isSame ? mandates?.accepted(presented, order) : undefined,
  };
}

/**
 * The journal of a call whose mandate is announced with the first thing that happens to its
 * payment: where an earlier attempt did all of that, this mandate admitted nothing.
 */
function announcing(journal: Journal, { mandate }: Extract<Mandated, { kind: 'accepted' }>): Journal {
  let announced = false;
  return {
    ...journal,
    record(type, facts) {
      if (!announced && type.startsWith('payment.')) {
        announced = true;
        recordVerified(journal, mandate);
      }
      journal.record(type, facts);
    },
  };
}
