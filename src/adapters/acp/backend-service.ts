/**
 * The backend of the checkouts: each exchange of a call is made, judged, recorded as an event, and
 * reported to the watch. The adapter opens a call here; the idempotency machine makes its attempts.
 */

import type { IncomingMessage } from 'node:http';
import type { Cancellation, Exchange } from '../../backend/backend-exchange.ts';
import type { AttemptEnd, FinalAnswer, ReadBack, Work } from '../../checkouts/attempts.ts';
import { isRefusal } from '../../checkouts/claim-table.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import type { EventType } from '../../events/event.ts';
import { type EventFacts, type EventSink, openJournal } from '../../events/journal.ts';
import type { JsonObject } from '../../json/json.ts';
import { type Receipt, unpaidReceipt } from '../../receipts/receipt.ts';
import { elapsedMs } from '../../time/time.ts';
import { type Contradiction, compileDocumentSchemas, type DocumentFault } from './backend-document.ts';
import { type BackendRules, exchangeWithBackend, type Outcome, type Purpose } from './backend-exchange.ts';
import { AcpError } from './error.ts';
import { validatorOf } from './validation/validator.ts';

/** A call that passed every check before the claim (acp 13.1). */
export interface CheckoutCall {
  readonly operation: Operation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** The configured id of the client, which goes to the backend. */
  readonly clientId: string;
  /** The id of the request, which the caller may have chosen. */
  readonly requestId: string;
  /** The gateway's own name for the call (`newCallId`). */
  readonly callId: string;
  /** The caller's `Request-Id` as it is echoed; undefined when there is none. */
  readonly callerRequestId: string | undefined;
  /** All headers of the caller; some of them go to the backend (acp 13.3). */
  readonly caller: IncomingMessage['headersDistinct'];
  /** As it came; undefined where there is none: reading, and a bare cancel. */
  readonly body: Uint8Array | undefined;
  readonly contentType: string | undefined;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
}

/** One call at the backend: its exchanges, its events and its receipt. */
export interface BackendCall extends Work {
  /**
   * The reading operation, which has no key and no claim. `signal`: aborted when the caller leaves.
   * Does not reject.
   */
  read(signal?: Cancellation): Promise<AttemptEnd>;
  /** To be called once the answer went out to its last byte. */
  delivered(answer: Delivered): void;
}

/** An answer for the caller, and where it comes from. */
export interface Delivered {
  readonly answer: FinalAnswer;
  readonly from: 'backend' | 'kept' | 'session';
}

/** Names a call in the reports about the backend. */
type CallNames = Pick<CheckoutCall, 'operation' | 'requestId' | 'callId'>;

/** Receives what the backend does. */
interface BackendWatch {
  /** An exchange begins; the result is called when it is over. */
  exchanging(): () => void;
  /** A document was refused: its fault, without any value of it. */
  invalidDocument(found: CallNames & DocumentFault): void;
  /** A document was passed on although it contradicts itself or the call. */
  contradiction(found: CallNames & { readonly contradiction: Contradiction }): void;
}

/** The operations that are read back, and the status that shows they happened (acp 12.5). */
const DONE_AT: Readonly<Partial<Record<Operation, string>>> = {
  completeCheckoutSession: 'completed',
  cancelCheckoutSession: 'canceled',
};
/** The statuses of a session while the backend works on it. */
const BUSY: ReadonlySet<unknown> = new Set(['in_progress', 'complete_in_progress']);

interface BackendServiceParts extends CheckoutRecords, BackendRules {
  /** To `backend.origin`, a connection for each exchange: see `reuse` of `createExchange`. */
  readonly exchange: Exchange;
  readonly watch: BackendWatch;
}

/** Begins calls at the backend. */
export type OpenBackendCall = (call: CheckoutCall) => BackendCall;

export function createBackendService(parts: BackendServiceParts): OpenBackendCall {
  const { exchange, watch } = parts;
  compileDocumentSchemas();

  return function openBackendCall(call) {
    const { operation, requestId, callId } = call;
    const events = openCheckoutEvents(call, parts);
    events.requested();
    const ask = async (purpose: Purpose, signal?: Cancellation): Promise<Outcome> => {
      const asked = purpose.kind === 'read-back' ? 'getCheckoutSession' : operation;
      const over = watch.exchanging();
      const outcome = await exchangeWithBackend(exchange, parts, call, purpose, signal)
        .then((found) => report(watch, { operation: asked, requestId, callId }, found))
        .catch(bugOutcome);
      over();
      events.exchanged(outcome, purpose.kind === 'read-back');
      return outcome;
    };
    return {
      attempt: async ({ backendKey, number }) =>
        endOf(operation, await ask({ kind: 'write', backendKey, attempt: number })),
      readBack: DONE_AT[operation] ? async () => readBackOf(operation, await ask({ kind: 'read-back' })) : undefined,
      read: async (signal) => endOf(operation, await ask({ kind: 'read' }, signal)),
      delivered: events.delivered,
    };
  };
}

function report(watch: BackendWatch, names: CallNames, outcome: Outcome): Outcome {
  if (outcome.kind === 'failure' && outcome.fault !== undefined) watch.invalidDocument({ ...names, ...outcome.fault });
  if (outcome.kind === 'document')
    for (const contradiction of outcome.contradictions) watch.contradiction({ ...names, contradiction });
  return outcome;
}

/**
 * Reads from the session whether an operation with an unknown end happened. A completed session
 * without its order cannot be the answer to a complete, so it counts as unreadable.
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
function endOf(operation: Operation, outcome: Outcome): AttemptEnd {
  switch (outcome.kind) {
    case 'document': {
      const { status, body, document } = outcome;
      const answer = { status, body };
      // A create makes a session; the schema has checked that its document has an id.
      const opens = operation === 'createCheckoutSession';
      return { kind: 'answer', answer, ...(opens ? { opened: String(document['id']) } : {}) };
    }
    case 'refusal': {
      const { status, document } = outcome.error;
      return { kind: 'answer', answer: { status, body: Buffer.from(JSON.stringify(document)) } };
    }
    case 'failure':
      if (outcome.why === undefined) return { kind: 'not_executed', failure: outcome.error };
      return { kind: 'unknown', why: outcome.why, failure: outcome.error };
  }
}

/** A bug of the gateway counts as an unknown end: the backend may have acted. */
function bugOutcome(cause: unknown): Outcome {
  const error = new AcpError('internal_error', { cause });
  return { kind: 'failure', why: 'reset', error, status: undefined, reason: undefined, fault: undefined };
}

/** Takes the events and receipts of checkouts. */
interface CheckoutRecords {
  readonly events: EventSink;
  readonly receipts: { push(receipt: Receipt): void };
}

/**
 * Records the events of one call for operators, without data of the caller or of the backend's
 * body. No payment carries these events, so each goes to the feed at once.
 */
function openCheckoutEvents(call: CheckoutCall, { events, receipts }: CheckoutRecords) {
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
      if (replayed) return;
      receipts.push(
        unpaidReceipt({
          ...{ requestId, resourceId: operation, protocol: 'acp', backendStatus: answer.status },
          ...{ durationMs: elapsedMs(call), metadata: { operation, callId } },
        }),
      );
    },
  };
}
