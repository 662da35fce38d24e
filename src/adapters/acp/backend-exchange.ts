/**
 * Makes one HTTP exchange of a checkout call with the backend: builds the request (acp 13.3), and
 * reads what matters of the answer. backend-service.ts decides how often.
 */

import {
  type BackendAnswer,
  BackendError,
  type BackendFailure,
  type BackendRequest,
  type Cancellation,
  type Exchange,
  type ReceivedHeaders,
} from '../../backend/exchange.ts';
import { validTraceparent, validTracestate } from '../../backend/trace-context.ts';
import {
  ACP_VERSION,
  MAX_DOCUMENT_BYTES,
  OPERATION_RULES,
  type Operation,
  SESSION_PLACE,
} from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import type { CheckoutCall } from './call.ts';

/** Headers of the caller that go to the backend, and their greatest lengths. */
const PASSED_ON = { 'accept-language': 256, 'user-agent': 512 } as const;
/** Headers about the caller's own message: they go with it and with nothing else. */
const OF_THE_MESSAGE = ['signature', 'timestamp'] as const;
const PRINTABLE = /^[\x20-\x7e]+$/;
/** Refusals whose document is read: it may be `requires_3ds` (acp 13.4). */
const READ_REFUSALS: ReadonlySet<number> = new Set([400, 422]);

/** What an exchange is for. */
export type Purpose =
  /** The caller's own POST. `attempt`: the number of the attempt, from 1. */
  | { readonly kind: 'write'; readonly backendKey: string; readonly attempt: number }
  /** The caller's own GET. */
  | { readonly kind: 'read' }
  /** The gateway's own GET, which shows what became of a POST. */
  | { readonly kind: 'read-back' };

/** What came back from the backend. */
export type BackendReply =
  /** `body`: undefined where the status is enough, and the body not read or not readable. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: ReceivedHeaders;
      readonly body: Uint8Array | undefined;
    }
  | {
      readonly kind: 'failed';
      readonly reason: BackendFailure;
      /** Of the head, where the answer broke off after it. */
      readonly status: number | undefined;
      /** False only when certainly no byte of the request reached the backend. */
      readonly written: boolean;
      readonly cause: BackendError;
    };

/**
 * `signal` ends the exchange early: only a caller's own GET may have one, because a POST goes on
 * when its caller leaves. Does not reject.
 */
export async function exchangeWithBackend(
  exchange: Exchange,
  backend: AcpBackend,
  call: CheckoutCall,
  purpose: Purpose,
  signal?: Cancellation,
): Promise<BackendReply> {
  const operation = purpose.kind === 'read-back' ? 'getCheckoutSession' : call.operation;
  const { timeoutMs } = backend.operations[operation];
  const limits = { timeoutMs, maxResponseBytes: MAX_DOCUMENT_BYTES, ...(signal === undefined ? {} : { signal }) };
  const expected = OPERATION_RULES[operation].success;
  let answer: BackendAnswer;
  try {
    answer = await exchange(requestOf(operation, backend, call, purpose), limits);
  } catch (thrown) {
    const status = thrown instanceof BackendError ? thrown.status : undefined;
    // A refusal counts, however long its page is.
    if (status !== undefined && status !== expected) return { kind: 'answer', status, headers: {}, body: undefined };
    return failed(thrown, status);
  }
  const { status, headers } = answer;
  const success = status === expected;
  if (!success && !READ_REFUSALS.has(status)) {
    // This body is not read: its socket is free at once.
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

function requestOf(operation: Operation, backend: AcpBackend, call: CheckoutCall, purpose: Purpose): BackendRequest {
  const { method } = OPERATION_RULES[operation];
  const session = encodeURIComponent(call.sessionId ?? '');
  return {
    method,
    path: backend.operations[operation].path.replace(SESSION_PLACE, session),
    headers: headersOf(call, purpose, backend.headers),
    body: purpose.kind === 'write' ? call.body : undefined,
  };
}

/**
 * The whole header block of an exchange (acp 13.3), lower-case names; other headers are dropped.
 * `configured`: the operator's, which nothing replaces.
 */
function headersOf(
  call: CheckoutCall,
  purpose: Purpose,
  configured: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers: Record<string, string> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'api-version': ACP_VERSION,
    'request-id': call.callerRequestId ?? call.requestId,
    'x-request-id': call.requestId,
    'agent-commerce-client': call.clientId,
  };
  const pass = (name: string, longest: number): void => {
    const value = single(call.caller[name]);
    if (value !== undefined && value.length <= longest && PRINTABLE.test(value)) headers[name] = value;
  };
  for (const [name, longest] of Object.entries(PASSED_ON)) pass(name, longest);
  if (purpose.kind !== 'read-back') for (const name of OF_THE_MESSAGE) pass(name, Number.POSITIVE_INFINITY);
  if (purpose.kind === 'write') {
    if (call.body !== undefined && call.contentType !== undefined) headers['content-type'] = call.contentType;
    headers['idempotency-key'] = purpose.backendKey;
    headers['x-attempt'] = String(purpose.attempt);
  }
  Object.assign(headers, traceOf(call));
  for (const [name, value] of Object.entries(configured)) headers[name.toLowerCase()] = value;
  return headers;
}

function traceOf({ caller }: CheckoutCall): Record<string, string> {
  const traceparent = single(caller['traceparent']);
  if (traceparent === undefined || !validTraceparent(traceparent)) return {};
  const tracestate = single(caller['tracestate']);
  return tracestate === undefined || !validTracestate(tracestate) ? { traceparent } : { traceparent, tracestate };
}

/** The value of a header that came once: of two values the backend might take the other one. */
function single(values: readonly string[] | undefined): string | undefined {
  const [value, ...others] = values ?? [];
  return others.length === 0 ? value : undefined;
}

/** The bytes of the body; the exchange limits their number. */
async function collected({ body }: BackendAnswer): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function failed(thrown: unknown, status: number | undefined): BackendReply {
  // A bug in the exchange: what was sent is not known.
  const cause = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
  return { kind: 'failed', reason: cause.reason, status, written: cause.requestWritten, cause };
}
