import {
  type BackendAnswer,
  BackendError,
  type BackendFailure,
  type BackendRequest,
  type Exchange,
  type ReceivedHeaders,
} from '../../backend/types.ts';
import { MAX_DOCUMENT_BYTES, OPERATION_RULES, type Operation, SESSION_PLACE } from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import { type OperationHeaders, operationHeaders } from './backend-headers.ts';
import type { CheckoutCall } from './call.ts';

/** What came back from the merchant. */
export type BackendReply =
  /** `body`: undefined where nobody needs it, and where it could not be read and the status says enough. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: ReceivedHeaders;
      readonly body: Uint8Array | undefined;
    }
  | {
      readonly kind: 'failed';
      readonly reason: BackendFailure;
      /** Of the head, where the answer broke off behind it. */
      readonly status: number | undefined;
      /** False only when it is certain that no byte of the request reached the merchant. */
      readonly written: boolean;
      readonly cause: BackendError;
    };

/** Refusals whose document is read: it may be `requires_3ds` (acp 13.4). */
const TELLING: ReadonlySet<number> = new Set([400, 422]);

/**
 * Makes one exchange with the merchant and reads what matters of the answer. `signal` ends it early: only a caller's own GET may have
 * one, for a POST goes on when its caller leaves. Does not reject.
 */
export async function callBackend(
  exchange: Exchange,
  backend: AcpBackend,
  call: CheckoutCall,
  errand: OperationHeaders,
  signal?: AbortSignal,
): Promise<BackendReply> {
  const operation = errand.kind === 'read-back' ? 'getCheckoutSession' : call.operation;
  const { timeoutMs } = backend.operations[operation];
  const limits = { timeoutMs, maxResponseBytes: MAX_DOCUMENT_BYTES, ...(signal === undefined ? {} : { signal }) };
  const expected = OPERATION_RULES[operation].success;
  let answer: BackendAnswer;
  try {
    answer = await exchange(requestOf(operation, backend, call, errand), limits);
  } catch (thrown) {
    const status = thrown instanceof BackendError ? thrown.status : undefined;
    // A refusal says what it says in however long a page.
    if (status !== undefined && status !== expected) return { kind: 'answer', status, headers: {}, body: undefined };
    return failed(thrown, status);
  }
  const { status, headers } = answer;
  const success = status === expected;
  if (!success && !TELLING.has(status)) {
    // Nobody reads this one: its socket goes back at once.
    answer.body.destroy();
    return { kind: 'answer', status, headers, body: undefined };
  }
  try {
    return { kind: 'answer', status, headers, body: await collected(answer) };
  } catch (thrown) {
    const broken = failed(thrown, status);
    return success ? broken : { kind: 'answer', status, headers, body: undefined };
  }
}

function requestOf(
  operation: Operation,
  backend: AcpBackend,
  call: CheckoutCall,
  errand: OperationHeaders,
): BackendRequest {
  const { method } = OPERATION_RULES[operation];
  const session = encodeURIComponent(call.sessionId ?? '');
  return {
    method,
    path: backend.operations[operation].path.replace(SESSION_PLACE, session),
    headers: operationHeaders(call, errand, backend.headers),
    body: errand.kind === 'write' ? call.body : undefined,
  };
}

/** The bytes of the body; the exchange sees to their number. */
async function collected({ body }: BackendAnswer): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function failed(thrown: unknown, status: number | undefined): BackendReply {
  // A bug behind the exchange: nobody can say any more what was sent.
  const cause = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
  return { kind: 'failed', reason: cause.reason, status, written: cause.requestWritten, cause };
}
