/** The last step of a call: hands the answer to the caller and writes down how that ended. */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { protocolOf } from '../../events/event.ts';
import type { DeliveryRecorder } from '../../payments/delivery/delivery-recorder.ts';
import type { PurchaseSigner } from '../../payments/delivery/purchase-signer.ts';
import { passed } from '../../payments/settlement/attempt.ts';
import { channelOf, type Receipt, unpaidReceipt } from '../../receipts/receipt.ts';
import { isRepeatable } from '../../resources/repeatable.ts';
import { elapsedMs } from '../../time/time.ts';
import { type AnsweredCall, annotationsOfFunded, callAt } from '../call.ts';
import { backendFailed, MANDATE_USED, undeliveredError } from '../steps/backend-failed.ts';
import { captureAnswer, readOn } from '../steps/capture-answer.ts';
import { signDelivery } from '../steps/sign-delivery.ts';

/** `metadata.backendErrorCode` of a paid call whose answer came and was not sent. */
const FAILURES = { client_gone: 'client_gone', failed: 'internal_error', busy: 'gateway_busy' } as const;
/** `details.reason` of a paid answer that the process had no memory for. */
const NO_ROOM = 'gateway_busy';

/** An answer is delivered only when it has been sent completely. */
export function deliver(
  deliveries: DeliveryRecorder,
  receipts: { push(receipt: Receipt): void },
  signer?: PurchaseSigner,
): RequestHandler {
  return async function deliverMiddleware(_req, res) {
    const call = callAt(res, 'answered');
    const { funding, responseWriter, answer, journal, keptBefore } = call;
    const paid = funding.kind === 'paid' ? funding : undefined;
    const captured = paid && captureAnswer(answer);
    const signed = paid && signer && signDelivery(signer, paid.record, paid.response, call.input, answer);
    if (paid !== undefined) passed('relaying', paid.record.payId);
    const sending = paid === undefined ? {} : { sending: () => deliveries.sending(paid.record) };
    const relayed = await responseWriter
      .relay(answer, { ...annotationsOfFunded(call), ...signed?.annotations, ...sending })
      .catch((bug: unknown) => ({ kind: 'failed', bug }) as const);
    if (relayed.kind === 'broken') {
      const { reason, requestWritten } = relayed.error;
      const failed = { reason, status: answer.status, requestWritten, cause: relayed.error, sent: relayed.sent };
      // Where the head is out already, the caller learns it from the broken connection.
      throw await backendFailed({ ...call, stage: 'funded' }, deliveries, failed);
    }
    // A bought answer that cannot be sent now is read all the same: once kept, it can be collected
    // without a second execution.
    if (relayed.kind === 'busy') await (paid !== undefined ? readOn(answer.body) : answer.body.destroy());
    const finished = relayed.kind === 'finished';
    const durationMs = elapsedMs(call);
    const data = { status: answer.status, ...(relayed.kind === 'client_gone' ? { clientGone: true } : {}) };
    if (!keptBefore) journal.record('backend.called', { status: 'ok', durationMs, data });
    if (finished) journal.record('resource.delivered', { status: 'ok', durationMs });
    if (paid === undefined) {
      journal.flush();
      if (finished) receipts.push(receiptOfFreeCall(call));
      if (relayed.kind === 'failed') throw relayed.bug;
      if (relayed.kind === 'busy') throw noRoomForFree(call);
      return;
    }
    const { record, lease } = paid;
    const { answer: kept, tooLarge = false } = captured?.() ?? {};
    const facts = {
      requestId: call.requestId,
      callId: call.callId,
      backendStatus: answer.status,
      durationMs,
      journal,
      lease,
      answer: kept,
      keptBefore,
      digests: signed?.digests(),
    };
    passed('relayed', record.payId);
    if (finished) await deliveries.delivered(record, facts);
    else {
      // What is too large to be kept waits for its buyer.
      const repeatable = isRepeatable(call.resource.backend) && !tooLarge;
      const failure = { code: FAILURES[relayed.kind] };
      const sent = relayed.kind === 'client_gone' ? relayed.sent : undefined;
      await deliveries.undelivered(record, { ...facts, failure, requestWritten: true, repeatable, sent });
    }
    if (relayed.kind === 'failed') throw relayed.bug;
    if (relayed.kind === 'busy')
      throw undeliveredError(record, {
        details: { status: answer.status, reason: NO_ROOM },
        retryable: kept !== undefined || isRepeatable(call.resource.backend),
      });
  };
}

function noRoomForFree({ authorization }: AnsweredCall): GatewayError {
  return authorization === undefined
    ? new GatewayError('GATEWAY_BUSY')
    : new GatewayError('GATEWAY_BUSY', { message: MANDATE_USED, retryable: false });
}

function receiptOfFreeCall(call: AnsweredCall): Receipt {
  return unpaidReceipt({
    requestId: call.requestId,
    resourceId: call.resource.id,
    protocol: protocolOf(call.channel),
    backendStatus: call.answer.status,
    durationMs: elapsedMs(call),
    metadata: { callId: call.callId, ...channelOf(call.channel) },
    ...(call.authorization === undefined ? {} : { authorization: call.authorization.summary }),
  });
}
