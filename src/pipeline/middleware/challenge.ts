/** Funds free calls, and answers 402 to a paid call without a proof; stands after `validate`. */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import { advanceCall, callAt } from '../call.ts';
import { requirePayment, type Selling } from '../steps/payment-required.ts';

/**
 * A paid call without a proof gets the challenge, whatever mandate it brought; one that has no
 * input yet gets it unprepared.
 */
export function challenge(selling: Selling, mandates?: MandateService): RequestHandler {
  return function challengeMiddleware(req, res, next) {
    const call = callAt(res, 'resolved', 'prepared');
    if (call.stage === 'resolved') {
      requirePayment(call, selling.offerTo(req, call.resource.id), undefined);
      return;
    }
    if (call.resource.pricing.type === 'free') {
      call.journal.flush();
      advanceCall(res, { ...call, stage: 'funded', funding: { kind: 'free' } });
      next();
      return;
    }
    if (call.proof.kind === 'none') {
      requirePayment(call, selling.offerTo(req, call.resource.id), undefined, mandates);
      return;
    }
    if (call.proof.kind === 'conflicting')
      throw new GatewayError('INPUT_INVALID', {
        message: 'Two different payment proofs came with this call. Send one.',
        details: { reason: 'payment_proofs_differ' },
      });
    next();
  };
}
