/**
 * The mandate of a paid call, as `settle` needs it: what it adds to the settlement request, when a
 * settlement failed for it alone, and which mandate the answer names.
 */

import type { GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { Purchase } from '../../mandates/ap2/purchase.ts';
import type { AcceptedMandate } from '../../mandates/ap2/reasons.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import { readStoredMandate, storedMandate } from '../../mandates/stored-mandate.ts';
import type { PaymentRecord, PaymentTerms } from '../../payments/ledger/ledger.ts';
import type { SettlementResult } from '../../payments/settlement/settlement-request.ts';
import type { Agreed } from '../../payments/x402/wire/offers.ts';
import type { PreparedCall, ProvenCall, UsedMandate } from '../call.ts';
import { mandateSummary, recordVerified, unauthorized, usedUp } from './mandate-outcome.ts';

/** The mandate of one paid call; of a call that needs none, it adds nothing. */
export interface PaymentMandate {
  /** Its use, which is reserved with the payment. */
  readonly terms: Pick<PaymentTerms, 'mandate'>;
  /** The journal of the call. The mandate is recorded with the first event of its payment. */
  readonly journal: Journal;
  /** The error of a settlement that failed for the mandate alone; undefined for all others. */
  failureOf(result: SettlementResult): GatewayError | undefined;
  /** The mandate that a payment was admitted with, for the answer to this call. */
  usedFor(record: PaymentRecord): UsedMandate | undefined;
}

/** `mandates` is undefined where no mandates are accepted. */
export function paymentMandate(call: ProvenCall, mandates: MandateService | undefined): PaymentMandate {
  return {
    ...addedBy(call),
    failureOf(result) {
      if (result.kind !== 'mandate_used' || call.mandated?.kind !== 'accepted') return undefined;
      if (mandates === undefined) throw new Error('a mandate was used up where none is accepted');
      return unauthorized(call, mandates, paidPurchase(call, call.agreed), usedUp(call.mandated, result));
    },
    usedFor: (record) => usedMandate(call, record, mandates),
  };
}

function addedBy({ mandated, journal }: ProvenCall): Pick<PaymentMandate, 'terms' | 'journal'> {
  if (mandated?.kind !== 'accepted') return { terms: {}, journal };
  return { terms: { mandate: storedMandate(mandated) }, journal: announcing(journal, mandated) };
}

function usedMandate(
  { mandated }: ProvenCall,
  record: PaymentRecord,
  mandates: MandateService | undefined,
): UsedMandate | undefined {
  const stored = record.mandate === undefined ? undefined : readStoredMandate(record.mandate);
  if (stored === undefined || mandated === undefined) return undefined;
  const presented = mandated.kind === 'accepted' ? mandated : mandated.reference;
  // Another mandate was not used up by this payment, and with other disclosures it is not the one
  // that was checked.
  const { reference, referenceSdHash } = stored;
  const isSame = presented?.reference === reference && presented.referenceSdHash === referenceSdHash;
  const { requestId: id, transaction } = record;
  const order = transaction === undefined ? { id } : { id, transaction };
  return {
    summary: mandateSummary(stored),
    receipt: isSame ? mandates?.accepted(presented, order) : undefined,
  };
}

/**
 * Records the mandate right before the first event of the payment. Where an earlier attempt made
 * all of those, this mandate admitted nothing.
 */
function announcing(journal: Journal, mandate: AcceptedMandate): Journal {
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

type Buying = Pick<PreparedCall | ProvenCall, 'resource' | 'input'> & Partial<Pick<ProvenCall, 'payment'>>;

/** The purchase of a paid call; its payer is known once the proof was verified. */
export function paidPurchase(call: Buying, { requirements, amount, currency }: Agreed): Purchase {
  const { network, asset, payTo } = requirements;
  const authorization = call.payment?.payload.payload.authorization;
  return {
    ...whatIsBought(call),
    price: { amount, currency },
    payment: { method: 'x402', network, asset, payTo, payer: authorization?.from, nonce: authorization?.nonce },
  };
}

/** The same for a free call (ap2 7.3). */
export function freePurchase(call: Buying, currency: string): Purchase {
  return { ...whatIsBought(call), price: { amount: '0', currency }, payment: undefined };
}

function whatIsBought({ resource, input }: Buying): Pick<Purchase, 'resourceId' | 'title' | 'input'> {
  return { resourceId: resource.id, title: resource.name, input };
}
