import type { RequestHandler } from 'express';
import { type AnsweredCall, callAt, type Relayed } from '../call.ts';
import type { DeliveryDesk } from '../payments/delivery.ts';
import { receiptId } from '../receipts/id.ts';
import type { Receipt } from '../receipts/receipt.ts';
import { elapsedMs } from './elapsed.ts';
import { backendFailed } from './forward.ts';

/** `metadata.backendErrorCode` of a paid call whose buyer left before the answer was sent. */
const CLIENT_GONE = 'CLIENT_GONE';

/** Hands the answer to the caller and calls it delivered only when it has been sent completely. */
export function conclude(
  desk: DeliveryDesk,
  receipts: { push(receipt: Receipt): void },
  warn: (message: string, cause: unknown) => void,
): RequestHandler {
  return async function concludeLayer(_req, res) {
    const call = callAt(res, 'answered');
    const { funding, presenter, answer } = call;
    const relayed = await presenter.relay(answer, funding.kind === 'paid' ? funding.response : undefined);
    if (relayed.kind === 'broken') {
      const { reason, requestWritten } = relayed.error;
      // The head is out, so the caller learns it from the broken connection; the books still have to.
      await backendFailed({ ...call, stage: 'funded' }, desk, { reason, status: answer.status, requestWritten });
      return;
    }
    call.journal.record('backend.called', {
      status: 'ok',
      durationMs: elapsedMs(call),
      data: { status: answer.status, ...(relayed.kind === 'client_gone' ? { clientGone: true } : {}) },
    });
    if (relayed.kind === 'finished')
      call.journal.record('resource.delivered', { status: 'ok', durationMs: elapsedMs(call) });
    if (funding.kind === 'paid') await concludePaid(call, relayed, desk, warn);
    else {
      call.journal.flush();
      if (relayed.kind === 'finished') receipts.push(receiptOfFreeCall(call));
    }
  };
}

async function concludePaid(
  call: AnsweredCall,
  relayed: Exclude<Relayed, { kind: 'broken' }>,
  desk: DeliveryDesk,
  warn: (message: string, cause: unknown) => void,
): Promise<void> {
  if (call.funding.kind !== 'paid') return;
  const { record } = call.funding;
  const { requestId, answer, journal } = call;
  const facts = { requestId, backendStatus: answer.status, durationMs: elapsedMs(call), events: journal.take() };
  const written =
    relayed.kind === 'finished'
      ? await desk.delivered(record, facts)
      : await desk.undelivered(record, { ...facts, failure: CLIENT_GONE, requestWritten: true });
  if (!written) warn('delivery not written; the lease will end and the record stays collectable', record.payId);
}

function receiptOfFreeCall(call: AnsweredCall): Receipt {
  const now = new Date().toISOString();
  return {
    id: receiptId(),
    requestId: call.requestId,
    resourceId: call.resource.id,
    protocol: call.channel,
    at: now,
    delivered: true,
    deliveredAt: now,
    backendStatus: call.answer.status,
    durationMs: elapsedMs(call),
  };
}
