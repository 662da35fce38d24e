import type { Exchange } from '../../backend/types.ts';
import type { AttemptEnd, ReadBack } from '../../checkouts/idempotency.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import type { Contradiction, DocumentFault } from './backend-answer.ts';
import { callBackend, type OperationHeaders } from './backend-call.ts';
import type { CheckoutCall, MerchantSide } from './call.ts';
import { AcpError } from './error.ts';
import { type CheckoutEventParts, openCheckoutEvents } from './events.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { compileAnswerSchemas } from './schemas.ts';
import { validatorOf } from './validation/validator.ts';

/**
 * A document of the merchant's that was refused: where it is wrong, and nothing of what stands in
 * it.
 */
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

/** Told of what the merchant does. */
interface BackendWatch {
  /** An exchange begins; the result is called when it is over. */
  exchanging(): () => void;
  invalidDocument(found: InvalidDocument): void;
  contradiction(found: ContradictoryDocument): void;
}

/**
 * The operations that move money or end a session, and the status that tells they happened (acp
 * 12.5).
 */
const DONE_AT: Readonly<Partial<Record<Operation, string>>> = {
  completeCheckoutSession: 'completed',
  cancelCheckoutSession: 'canceled',
};
/** The merchant is at the session. */
const BUSY: ReadonlySet<unknown> = new Set(['in_progress', 'complete_in_progress']);

/** Whether the session tells what became of an operation. */
function readsBack(operation: Operation): boolean {
  return DONE_AT[operation] !== undefined;
}

/**
 * What a session that was read tells of an operation whose end is unknown. A completed one without
 * its order cannot be given as the answer of a complete, and is as good as not read.
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

/** What the merchant's side works with. */
interface BackendServiceParts extends CheckoutEventParts {
  /** To `backend.origin`, a connection for each exchange: see `reuse` of `createExchange`. */
  readonly exchange: Exchange;
  readonly backend: AcpBackend;
  /** Whether a document that contradicts itself or the call is refused, and not only told of. */
  readonly strictSemantics: boolean;
  /** Whether a refusal for want of 3D Secure is passed on by its code. */
  readonly authenticationErrors: boolean;
  readonly watch: BackendWatch;
}

/** The merchant as calls meet it: each exchange is made, judged, and told to whoever watches. */
export function createBackendService(parts: BackendServiceParts): MerchantSide {
  const { exchange, backend, strictSemantics, authenticationErrors, watch } = parts;
  compileAnswerSchemas();

  const meet = async (call: CheckoutCall, errand: OperationHeaders, signal?: AbortSignal): Promise<Outcome> => {
    const operation = errand.kind === 'read-back' ? 'getCheckoutSession' : call.operation;
    const over = watch.exchanging();
    try {
      const heard = await callBackend(exchange, backend, call, errand, signal);
      const outcome = outcomeOf({ operation, sessionId: call.sessionId, strictSemantics, authenticationErrors }, heard);
      tell(watch, { operation, requestId: call.requestId, callId: call.callId }, outcome);
      return outcome;
    } catch (bug) {
      return bugOutcome(bug);
    } finally {
      over();
    }
  };

  return {
    open(call) {
      const books = openCheckoutEvents(call, parts);
      books.requested();
      const ask = async (errand: OperationHeaders, signal?: AbortSignal): Promise<Outcome> => {
        const outcome = await meet(call, errand, signal);
        books.asked(outcome, errand.kind === 'read-back');
        return outcome;
      };
      return {
        attempt: async ({ backendKey, number }) =>
          endOf(call.operation, await ask({ kind: 'write', backendKey, attempt: number })),
        readBack: readsBack(call.operation)
          ? async () => readBackOf(call.operation, await ask({ kind: 'read-back' }))
          : undefined,
        read: async (signal) => endOf(call.operation, await ask({ kind: 'read' }, signal)),
        delivered: (answer) => books.delivered(answer),
      };
    },
  };
}

function tell(
  watch: BackendWatch,
  asked: Pick<CheckoutCall, 'operation' | 'requestId' | 'callId'>,
  outcome: Outcome,
): void {
  if (outcome.kind === 'failure' && outcome.fault !== undefined) watch.invalidDocument({ ...asked, ...outcome.fault });
  if (outcome.kind === 'document')
    for (const contradiction of outcome.contradictions) watch.contradiction({ ...asked, contradiction });
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

/** A create makes a session; that its document has an id the schema has seen to. */
function openedBy(
  operation: Operation,
  { document: { id } }: Extract<Outcome, { readonly kind: 'document' }>,
): { readonly opened?: string } {
  return operation === 'createCheckoutSession' && typeof id === 'string' ? { opened: id } : {};
}

/** A bug of ours: what the merchant did is not known. */
function bugOutcome(cause: unknown): Outcome {
  const error = new AcpError('internal_error', { cause });
  return { kind: 'failure', why: 'reset', error, status: undefined, reason: undefined, fault: undefined };
}
