/**
 * The events and the receipt of one checkout call, which the backend service records (acp 13.6).
 */

import { isRefusal } from '../../checkouts/claim-table.ts';
import type { EventType } from '../../events/event.ts';
import { type EventFacts, type EventSink, openJournal } from '../../events/journal.ts';
import type { JsonObject } from '../../json/types.ts';
import { type Receipt, unpaidReceipt } from '../../receipts/receipt.ts';
import { elapsedMs } from '../../time/time.ts';
import type { CheckoutCall, Delivered } from './call.ts';
import type { Outcome } from './outcome.ts';

/** Where events and receipts of checkouts go. */
export interface CheckoutEventParts {
  readonly events: EventSink;
  readonly receipts: { push(receipt: Receipt): void };
}

/**
 * Records what operators can read of one call: nothing of the caller, and of the backend only the
 * status. No payment carries these events, so each goes to the feed at once.
 */
export function openCheckoutEvents(call: CheckoutCall, { events, receipts }: CheckoutEventParts) {
  const { operation, requestId, callId } = call;
  const journal = openJournal({ requestId, callId, resourceId: operation, adapter: 'acp' }, events);
  const record = (type: EventType, data: JsonObject = {}, facts: EventFacts = {}): void => {
    journal.record(type, { ...facts, data: { protocol: 'acp', operation, ...data } });
    journal.flush();
  };
  return {
    requested: () => record('resource.requested'),
    /** An exchange ended. `readback`: the gateway's own. */
    exchanged(outcome: Outcome, readback: boolean): void {
      const mark = readback ? { readback: true } : {};
      const durationMs = elapsedMs(call);
      if (outcome.kind !== 'failure') {
        record('backend.called', { status: outcome.status, ...mark }, { status: 'ok', durationMs });
        return;
      }
      const { status, reason } = outcome;
      const code = reason === 'timeout' ? 'BACKEND_TIMEOUT' : 'BACKEND_ERROR';
      const known = { ...(status === undefined ? {} : { status }), ...(reason === undefined ? {} : { reason }) };
      record('backend.failed', { code, ...known, ...mark }, { status: 'error', durationMs });
    },
    delivered({ answer, from }: Delivered): void {
      // A refusal delivers nothing.
      if (isRefusal(answer.status)) return;
      const replayed = from === 'kept';
      record('resource.delivered', replayed ? { replayed } : {}, { status: 'ok', durationMs: elapsedMs(call) });
      if (!replayed) receipts.push(receiptOf(call, answer.status));
    },
  };
}

function receiptOf(call: CheckoutCall, backendStatus: number): Receipt {
  const { operation, requestId, callId } = call;
  return unpaidReceipt({
    requestId,
    resourceId: operation,
    protocol: 'acp',
    backendStatus,
    durationMs: elapsedMs(call),
    metadata: { operation, callId },
  });
}
