/**
 * Checks the mandate of a call whose resource requires one (contract 4.2, step 5, and contract 5):
 * after the payment proof was verified, before anything is settled or sent.
 */

import { randomUUID } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { AcceptedMandate } from '../../mandates/ap2/reasons.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import type { Used } from '../../mandates/register.ts';
import { needsMandate } from '../../payments/x402/wire/challenge.ts';
import { StoreError } from '../../store/port/store-error.ts';
import { advanceCall, callAt, type FundedCall, type ProvenCall, type UsedMandate } from '../call.ts';
import { PendingRefusal } from '../steps/collecting.ts';
import { mandateSummary, recordVerified, unauthorized, usedUp } from '../steps/mandate-outcome.ts';
import { freePurchase, paidPurchase } from '../steps/payment-mandate.ts';

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
