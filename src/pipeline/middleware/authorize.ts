/**
 * Checks the mandate of a call whose resource requires one (contract 4.2, step 5, and contract 5):
 * after the payment proof was verified, before anything is settled or sent.
 */

import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { AcceptedMandate } from '../../mandates/ap2/model/verdict.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import type { Used } from '../../mandates/register/register.ts';
import type { PaymentLedger } from '../../payments/ledger/ledger.ts';
import { needsMandate } from '../../payments/x402/wire/payment-required.ts';
import { StoreError } from '../../store/port/store-error.ts';
import { advanceCall, callAt, type FundedCall, type Mandated, type ProvenCall, type UsedMandate } from '../call.ts';
import { mandateSummary, recordVerified, unauthorized, usedUp } from '../steps/mandate-outcome.ts';
import { freePurchase, paidPurchase } from '../steps/mandate-purchase.ts';
import { throwStorageError } from '../steps/storage-error.ts';

/** The use of a paid call's mandate is reserved with its payment, that of a free call here. */
export function authorize(mandates: MandateService, ledger: Pick<PaymentLedger, 'read'>): RequestHandler {
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
    if (call.stage === 'funded') await authorizeFree(res, call, mandates);
    else advanceCall(res, { ...call, mandated: await authorizePaid(call, mandates, ledger) });
    next();
  };
}

/** @throws GatewayError for a mandate that is missing or refused */
async function authorizePaid(
  call: ProvenCall,
  mandates: MandateService,
  ledger: Pick<PaymentLedger, 'read'>,
): Promise<Mandated> {
  const purchase = paidPurchase(call, call.agreed);
  const verdict = await mandates.verify(call.mandate, purchase);
  if (verdict.kind === 'accepted') return { kind: 'accepted', mandate: verdict };
  // A mandate lives for minutes and a payment is answered for a day: the record of what was
  // admitted once answers.
  if (await wasAdmitted(ledger, call.payment.payId)) return { kind: 'unneeded', refused: verdict };
  throw unauthorized(call, mandates, purchase, verdict);
}

/** Whether a payment got past its reservation, which only a call with a good mandate does. */
async function wasAdmitted(ledger: Pick<PaymentLedger, 'read'>, payId: string): Promise<boolean> {
  const record = await ledger.read(payId).catch(throwStorageError);
  return record !== undefined && record.state !== 'reserved';
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
