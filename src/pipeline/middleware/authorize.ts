import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { AcceptedMandate } from '../../mandates/ap2/model/verdict.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import type { Used } from '../../mandates/register/register.ts';
import type { PaymentLedger } from '../../payments/ledger/ledger.ts';
import type { Offers } from '../../payments/x402/wire/offers.ts';
import { needsMandate } from '../../payments/x402/wire/payment-required.ts';
import { StoreError } from '../../store/port/store.ts';
import { advanceCall, callAt, type FundedCall, type Mandated, type ProvenCall, type UsedMandate } from '../call.ts';
import { freePurchase, paidPurchase } from '../steps/mandate-purchase.ts';
import { offerOf } from '../steps/payment-required.ts';
import { throwStorageError } from '../steps/storage-error.ts';
import { unauthorized, usedUp } from '../steps/unauthorized.ts';

/**
 * Checks the mandate of a call whose resource requires one (contract 4.2, step 5, and contract 5),
 * after the payment proof was found right and before anything is settled or sent. The use of a paid
 * one is reserved with its payment, that of a free one here.
 */
export function authorize(
  offers: Offers,
  mandates: MandateService,
  ledger: Pick<PaymentLedger, 'read'>,
): RequestHandler {
  return async function authorizeLayer(_req, res, next) {
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
    if (call.stage === 'funded') await authorizeFree(res, call, mandates);
    else advanceCall(res, { ...call, mandated: await mandated(call, offers, mandates, ledger) });
    next();
  };
}

/** @throws GatewayError for a mandate that is missing or refused */
async function mandated(
  call: ProvenCall,
  offers: Offers,
  mandates: MandateService,
  ledger: Pick<PaymentLedger, 'read'>,
): Promise<Mandated> {
  const purchase = paidPurchase(call, offerOf(offers, call.resource.id));
  const verdict = await mandates.verify(call.mandate, purchase);
  if (verdict.kind === 'accepted') return { kind: 'accepted', mandate: verdict };
  // Its mandate lives for minutes, a payment may be asked about for a day: what was admitted once
  // is answered by its record.
  if (await wasAdmitted(ledger, call.payment.payId)) return { kind: 'unneeded', refused: verdict };
  throw unauthorized(call, mandates, purchase, verdict);
}

/**
 * Whether a payment got past its reservation, which no call without a good mandate could have done.
 */
async function wasAdmitted(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<boolean> {
  const record = await ledger.read(payId).catch(throwStorageError);
  return record !== undefined && record.state !== 'reserved';
}

async function authorizeFree(res: Response, call: FundedCall, mandates: MandateService): Promise<void> {
  const purchase = freePurchase(call, mandates.freeCurrency);
  const verdict = await mandates.verify(call.mandate, purchase);
  if (verdict.kind === 'refused') throw unauthorized(call, mandates, purchase, verdict);
  // Never a name that the caller chose: a second call under it would be given the first one's
  // place.
  const name = randomUUID();
  const used = await reserved(mandates, name, verdict);
  if (used.kind === 'refused') throw unauthorized(call, mandates, purchase, usedUp(verdict, used));
  recordVerified(call.journal, verdict);
  call.journal.flush();
  const authorization: UsedMandate = {
    summary: summaryOf(verdict),
    receipt: mandates.accepted(verdict, { id: call.requestId }),
    // What cannot be told stays reserved: it is not used a second time.
    finish: (how) => mandates.register.finish(name, how).catch(() => undefined),
  };
  advanceCall(res, { ...call, authorization });
}

async function reserved(
  mandates: MandateService,
  name: string,
  { claim }: AcceptedMandate,
): Promise<Used | { readonly kind: 'refused'; readonly reason: 'provider_unavailable'; readonly cause: unknown }> {
  try {
    return await mandates.register.reserve(name, claim);
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause;
    // It may stand. Nothing was sent, so whoever tries again must not find it used.
    void mandates.register.finish(name, 'release').catch(() => undefined);
    return { kind: 'refused', reason: 'provider_unavailable', cause };
  }
}

/** Records an accepted mandate in the call's journal, by its ids alone (ap2 12). */
export function recordVerified(journal: Journal, { mode, issuer, mandateId, reference }: AcceptedMandate): void {
  journal.record('authorization.verified', {
    status: 'ok',
    data: { method: 'ap2', mode, issuer, mandateId, reference },
  });
}

function summaryOf({ reference, issuer, checkoutIssuer, checkoutId }: AcceptedMandate): UsedMandate['summary'] {
  return { method: 'ap2', reference, metadata: { mandateIssuer: issuer, checkoutIssuer, checkoutId } };
}
