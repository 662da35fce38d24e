/**
 * The mandate of a call whose resource requires one (contract 4.2, step 5, and contract 5). It is
 * checked after the payment proof, before anything is settled or sent; `settle` reserves its use.
 */

import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import { type ErrorDetails, GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { JsonObject } from '../../json/json.ts';
import type { Purchase } from '../../mandates/ap2/purchase.ts';
import { type AcceptedMandate, REASONS, type Reason, type RefusedMandate } from '../../mandates/ap2/reasons.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import type { Used } from '../../mandates/register.ts';
import { readStoredMandate, type StoredMandate, storedMandate } from '../../mandates/stored-mandate.ts';
import type { PaymentRecord, PaymentTerms } from '../../payments/ledger/ledger.ts';
import type { SettlementResult } from '../../payments/settlement/settlement-request.ts';
import { type Accepts, needsMandate } from '../../payments/x402/wire/challenge.ts';
import { StoreError } from '../../store/port/store-error.ts';
import {
  advanceCall,
  callAt,
  type FundedCall,
  type PreparedCall,
  type ProvenCall,
  type ResolvedCall,
  type UsedMandate,
} from '../call.ts';
import { PendingRefusal } from '../collecting.ts';

/** The use of a paid call's mandate is reserved with its payment, that of a free call here. */
export function authorize(mandates: MandateService): RequestHandler {
  return async function authorizeMiddleware(_req, res, next) {
    const call = callAt(res, 'proven', 'funded');
    if (!needsMandate(call.resource)) {
      next();
      return;
    }
    if (call.mandate.kind === 'conflicting')
      throw new GatewayError('INPUT_INVALID', {
        message: 'Two different mandates came with this call. Send one.',
        details: { reason: 'mandates_differ' },
      });
    await (call.stage === 'funded' ? authorizeFree(res, call, mandates) : authorizePaid(res, call, mandates));
    next();
  };
}

/** @throws PendingRefusal for a mandate that is missing or refused */
async function authorizePaid(res: Response, call: ProvenCall, mandates: MandateService): Promise<void> {
  const purchase = paidPurchase(call, call.agreed);
  const mandated = await mandates.verify(call.mandate, purchase);
  advanceCall(res, { ...call, mandated });
  if (mandated.kind === 'refused')
    throw new PendingRefusal(() => {
      throw unauthorized(call, mandates, purchase, mandated);
    });
}

async function authorizeFree(res: Response, call: FundedCall, mandates: MandateService): Promise<void> {
  const purchase = freePurchase(call, mandates.freeCurrency);
  const verdict = await mandates.verify(call.mandate, purchase);
  if (verdict.kind === 'refused') throw unauthorized(call, mandates, purchase, verdict);
  // Not a name that the caller chose: a second call under it would get the first one's reservation.
  const name = randomUUID();
  const used = await reserveUse(mandates, name, verdict);
  if (used.kind === 'refused') throw unauthorized(call, mandates, purchase, usedUp(verdict, used));
  recordVerified(call.journal, verdict);
  call.journal.flush();
  const authorization: UsedMandate = {
    summary: mandateSummary({ ...verdict, mandateIssuer: verdict.issuer }),
    receipt: mandates.accepted(verdict, { id: call.requestId }),
    // A use whose end the register does not learn stays reserved: it is not used a second time.
    finish: (how) => mandates.register.finish(name, how).catch(() => undefined),
  };
  advanceCall(res, { ...call, authorization });
}

async function reserveUse(
  mandates: MandateService,
  name: string,
  { claim }: AcceptedMandate,
): Promise<Used | { readonly kind: 'refused'; readonly reason: 'provider_unavailable'; readonly cause: unknown }> {
  try {
    return await mandates.register.reserve(name, claim);
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause;
    // The reservation may stand. Nothing was sent, so the next try must not find the mandate used.
    void mandates.register.finish(name, 'release').catch(() => undefined);
    return { kind: 'refused', reason: 'provider_unavailable', cause };
  }
}

const METHOD = 'ap2';

/** Records an accepted mandate in the call's journal, by its ids alone (ap2 12). */
function recordVerified(journal: Journal, { mode, issuer, mandateId, reference }: AcceptedMandate): void {
  journal.record('authorization.verified', {
    status: 'ok',
    data: { method: METHOD, mode, issuer, mandateId, reference },
  });
}

/** The statement of the gateway's own receipt about a mandate. */
function mandateSummary({
  reference,
  mandateIssuer,
  checkoutIssuer,
  checkoutId,
}: Pick<StoredMandate, 'reference' | 'mandateIssuer' | 'checkoutIssuer' | 'checkoutId'>): UsedMandate['summary'] {
  return { method: METHOD, reference, metadata: { mandateIssuer, checkoutIssuer, checkoutId } };
}

/**
 * The answer to a refused mandate: the error of the reason (ap2 8), a signed receipt of the refusal
 * (ap2 13), and a fresh checkout for the next mandate. Records the refusal in the call's journal.
 */
export function unauthorized(
  call: Pick<ResolvedCall, 'journal'>,
  mandates: MandateService,
  purchase: Purchase,
  refused: Omit<RefusedMandate, 'kind'>,
): GatewayError {
  const { reason, issuer, reference, mandate, constraint } = refused;
  const { code, ap2Error, advice } = REASONS[reason];
  if (code === 'AUTHORIZATION_PROVIDER_UNAVAILABLE')
    return new GatewayError(code, { message: advice, details: { reason }, cause: refused.cause });
  const missing = code === 'AUTHORIZATION_REQUIRED';
  call.journal.record('authorization.rejected', {
    status: 'error',
    data: {
      method: METHOD,
      reason,
      ...(missing ? { methods: [METHOD] } : {}),
      ...(issuer === undefined ? {} : { issuer }),
    },
  });
  const receipt =
    reference === undefined || ap2Error === undefined ? {} : { receipt: mandates.rejected(reference, reason) };
  const details: ErrorDetails = {
    reason,
    ...(missing ? { required: [METHOD], missing: [METHOD] } : {}),
    ...(mandate === undefined ? {} : { mandate }),
    ...(constraint === undefined ? {} : { constraint }),
    ...receipt,
  };
  return new GatewayError(code, {
    message: advice,
    details,
    authorization: JSON.parse(mandates.challenge(purchase)) as JsonObject,
  });
}

/** The refusal of a valid mandate that cannot be used now. */
export function usedUp(
  { reference, referenceSdHash, issuer }: AcceptedMandate,
  { reason, cause }: { readonly reason: Reason; readonly cause?: unknown },
): RefusedMandate {
  return { kind: 'refused', reason, reference: { reference, referenceSdHash }, issuer, cause };
}

/** The mandate of one paid call; for a call that needs none, it adds nothing. */
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
  // This payment used up no other mandate, and with other disclosures it is not the mandate that
  // was checked.
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
 * Records the mandate right before the first event of the payment. If an earlier attempt recorded
 * all events of the payment, this mandate admitted nothing.
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
export function paidPurchase(call: Buying, { requirements, amount, currency }: Accepts): Purchase {
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
