/**
 * The backend of the checkouts: each exchange of a call is made, judged, recorded as an event, and
 * reported to the watch. The adapter opens a call here; the idempotency machine makes its attempts.
 */

import type { Cancellation, Exchange } from '../../backend/exchange.ts';
import { isRefusal } from '../../checkouts/claim-table.ts';
import type { AttemptEnd, ReadBack } from '../../checkouts/idempotency.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import type { EventType } from '../../events/event.ts';
import { type EventFacts, type EventSink, openJournal } from '../../events/journal.ts';
import type { JsonObject } from '../../json/types.ts';
import { type Receipt, unpaidReceipt } from '../../receipts/receipt.ts';
import { elapsedMs } from '../../time/time.ts';
import { type Contradiction, compileDocumentSchemas, type DocumentFault } from './backend-document.ts';
import { exchangeWithBackend, type Purpose } from './backend-exchange.ts';
import type { BackendService, CheckoutCall, Delivered } from './call.ts';
import { AcpError } from './error.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { validatorOf } from './validation/validator.ts';

/** A document of the backend that was refused: its fault, without any value of it. */
export interface InvalidDocument extends DocumentFault {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
}

/** A document that was passed on although it contradicts itself or the call. */
export interface ContradictoryDocument {
  readonly operation: Operation;
  readonly requestId: string;
  readonly callId: string;
  readonly contradiction: Contradiction;
}

/** Receives what the backend does. */
interface BackendWatch {
  /** An exchange begins; the result is called when it is over. */
  exchanging(): () => void;
  invalidDocument(found: InvalidDocument): void;
  contradiction(found: ContradictoryDocument): void;
}

/** The operations that are read back, and the status that shows they happened (acp 12.5). */
const DONE_AT: Readonly<Partial<Record<Operation, string>>> = {
  completeCheckoutSession: 'completed',
  cancelCheckoutSession: 'canceled',
};
/** The backend works on the session. */
const BUSY: ReadonlySet<unknown> = new Set(['in_progress', 'complete_in_progress']);

/** What the service works with. */
interface BackendServiceParts extends CheckoutEventParts {
  /** To `backend.origin`, a connection for each exchange: see `reuse` of `createExchange`. */
  readonly exchange: Exchange;
  readonly backend: AcpBackend;
  /** Whether a document that contradicts itself or the call is refused, not only reported. */
  readonly strictSemantics: boolean;
  /** Whether a refusal for want of 3D Secure is passed on by its code. */
  readonly authenticationErrors: boolean;
  readonly watch: BackendWatch;
}

export function createBackendService(parts: BackendServiceParts): BackendService {
  const { exchange, backend, strictSemantics, authenticationErrors, watch } = parts;
  compileDocumentSchemas();

  const exchangeFor = async (call: CheckoutCall, purpose: Purpose, signal?: Cancellation): Promise<Outcome> => {
    const operation = purpose.kind === 'read-back' ? 'getCheckoutSession' : call.operation;
    const over = watch.exchanging();
    try {
      const reply = await exchangeWithBackend(exchange, backend, call, purpose, signal);
      const outcome = outcomeOf({ operation, sessionId: call.sessionId, strictSemantics, authenticationErrors }, reply);
      report(watch, { operation, requestId: call.requestId, callId: call.callId }, outcome);
      return outcome;
    } catch (bug) {
      return bugOutcome(bug);
    } finally {
      over();
    }
  };

  return {
    open(call) {
      const events = openCheckoutEvents(call, parts);
      events.requested();
      const ask = async (purpose: Purpose, signal?: Cancellation): Promise<Outcome> => {
        const outcome = await exchangeFor(call, purpose, signal);
        events.exchanged(outcome, purpose.kind === 'read-back');
        return outcome;
      };
      return {
        attempt: async ({ backendKey, number }) =>
          endOf(call.operation, await ask({ kind: 'write', backendKey, attempt: number })),
        readBack: DONE_AT[call.operation]
          ? async () => readBackOf(call.operation, await ask({ kind: 'read-back' }))
          : undefined,
        read: async (signal) => endOf(call.operation, await ask({ kind: 'read' }, signal)),
        delivered: (answer) => events.delivered(answer),
      };
    },
  };
}

function report(
  watch: BackendWatch,
  asked: Pick<CheckoutCall, 'operation' | 'requestId' | 'callId'>,
  outcome: Outcome,
): void {
  if (outcome.kind === 'failure' && outcome.fault !== undefined) watch.invalidDocument({ ...asked, ...outcome.fault });
  if (outcome.kind === 'document')
    for (const contradiction of outcome.contradictions) watch.contradiction({ ...asked, contradiction });
}

/**
 * What the session shows of an operation whose end is unknown. A completed one without its order
 * cannot be the answer to a complete, so it counts as not read.
 */
function readBackOf(operation: Operation, read: Outcome): ReadBack {
  if (read.kind !== 'document') return { kind: 'unreadable' };
  const { document, body } = read;
  const { status } = document;
  if (BUSY.has(status)) return { kind: 'in_progress' };
  if (status !== DONE_AT[operation]) return { kind: 'not_happened' };
  const complete = operation === 'completeCheckoutSession';
  if (complete && validatorOf('strict', 'CheckoutSessionWithOrder')(document) !== undefined)
    return { kind: 'unreadable' };
  return { kind: 'happened', answer: { status: OPERATION_RULES[operation].success, body } };
}

/** A refusal goes out, and is kept, as the Error document in its final bytes. */
function endOf(operation: Operation, outcome: Outcome): AttemptEnd<AcpError> {
  switch (outcome.kind) {
    case 'document':
      return {
        kind: 'answer',
        answer: { status: outcome.status, body: outcome.body },
        ...openedBy(operation, outcome),
      };
    case 'refusal': {
      const { status, document } = outcome.error;
      return { kind: 'answer', answer: { status, body: Buffer.from(JSON.stringify(document)) } };
    }
    case 'failure':
      if (outcome.why === undefined) return { kind: 'not_executed', failure: outcome.error };
      return { kind: 'unknown', why: outcome.why, failure: outcome.error };
  }
}

/** A create makes a session; the schema has checked that its document has an id. */
function openedBy(
  operation: Operation,
  { document: { id } }: Extract<Outcome, { readonly kind: 'document' }>,
): { readonly opened?: string } {
  return operation === 'createCheckoutSession' && typeof id === 'string' ? { opened: id } : {};
}

/** A bug of the gateway: what the backend did is not known. */
function bugOutcome(cause: unknown): Outcome {
  const error = new AcpError('internal_error', { cause });
  return { kind: 'failure', why: 'reset', error, status: undefined, reason: undefined, fault: undefined };
}

/** Where events and receipts of checkouts go. */
interface CheckoutEventParts {
  readonly events: EventSink;
  readonly receipts: { push(receipt: Receipt): void };
}

/**
 * Records what operators can read of one call: nothing of the caller, and of the backend only the
 * status. No payment carries these events, so each goes to the feed at once.
 */
function openCheckoutEvents(call: CheckoutCall, { events, receipts }: CheckoutEventParts) {
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
