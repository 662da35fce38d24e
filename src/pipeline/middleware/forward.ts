/** Sends the prepared request of a funded call to the backend and classifies its answer. */

import type { RequestHandler, Response } from 'express';
import { BackendError, classify, type Exchange } from '../../backend/exchange.ts';
import type { DeliveryRecorder } from '../../payments/delivery/delivery-recorder.ts';
import { passed } from '../../payments/steps.ts';
import { advanceCall, callAt, type FundedCall } from '../call.ts';
import { backendFailed } from '../steps/backend-failed.ts';
import { conditionsOf, requestToBackend } from '../steps/backend-request.ts';
import { toldByBackend } from '../steps/told-by-backend.ts';

/** A free call ends with its caller; a paid one runs to its end. */
export function forward(exchange: Exchange, deliveries: DeliveryRecorder): RequestHandler {
  return async function forwardMiddleware(_req, res, next) {
    const call = callAt(res, 'funded', 'answered');
    if (call.stage === 'answered') {
      // An earlier attempt got the backend's answer and kept it.
      next();
      return;
    }
    const { timeoutMs, maxResponseBytes, relayStatuses } = call.resource.backend;
    const paid = call.funding.kind === 'paid' ? call.funding : undefined;
    const atMost = Math.min(maxResponseBytes, call.responseWriter.maxAnswerBytes);
    const limits = {
      ...{ timeoutMs, maxResponseBytes: atMost },
      ...(paid === undefined ? { signal: call.left } : { sale: paid.record }),
    };
    if (paid !== undefined) passed('forwarding', paid.record.payId);
    const send = paid?.held?.exchange ?? exchange;
    try {
      const answer = await send(requestToBackend(call, paid?.record), limits);
      void call.authorization?.finish?.('commit');
      const outcome = classify(answer.status, relayStatuses.sold, conditionsOf(call, paid?.record) !== undefined);
      if (outcome.kind === 'deliver') {
        advanceCall(res, { ...call, stage: 'answered', answer, keptBefore: false });
        next();
        return;
      }
      const { status } = answer;
      const reason = outcome.kind === 'redirect' ? { reason: 'redirect_not_followed' } : {};
      const told = await toldByBackend(answer);
      throw await backendFailed(call, deliveries, { ...reason, status, requestWritten: true, told });
    } catch (thrown) {
      if (!(thrown instanceof BackendError)) throw thrown;
      const { reason, requestWritten } = thrown;
      await finishMandate(res, call, requestWritten);
      throw await backendFailed(call, deliveries, { reason, status: 0, requestWritten, cause: thrown });
    }
  };
}

/** A free call that certainly never left has used nothing up: its mandate is as good as before. */
async function finishMandate(res: Response, call: FundedCall, requestWritten: boolean): Promise<void> {
  const { authorization, ...unauthorized } = call;
  if (authorization?.finish === undefined) return;
  await authorization.finish(requestWritten ? 'commit' : 'release');
  if (!requestWritten) advanceCall(res, unauthorized);
}
