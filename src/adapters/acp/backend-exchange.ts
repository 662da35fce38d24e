/**
 * Makes one HTTP exchange of a checkout call with the backend: builds the request (acp 13.3), and
 * turns the answer into a document, a refusal or a failure (acp 13.4). Claims, events and the
 * answer to the caller follow from this outcome. backend-service.ts calls it for each exchange.
 */

import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  type Cancellation,
  type Exchange,
  wireReason,
} from '../../backend/backend-exchange.ts';
import { validTraceparent, validTracestate } from '../../backend/trace-context.ts';
import type { Unknown } from '../../checkouts/claim-table.ts';
import {
  ACP_VERSION,
  MAX_DOCUMENT_BYTES,
  OPERATION_RULES,
  type Operation,
  SESSION_PLACE,
} from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import { isObject, JsonError, type JsonObject, parseStrictJson } from '../../json/json.ts';
import { type Contradiction, checkDocument, type DocumentFault } from './backend-document.ts';
import type { CheckoutCall } from './backend-service.ts';
import { AcpError } from './error.ts';
import { validatorOf } from './validation/validator.ts';

/** Headers of the caller that go to the backend, and their greatest lengths. */
const PASSED_ON = { 'accept-language': 256, 'user-agent': 512 } as const;
/** Headers about the caller's own message: a read-back does not carry them. */
const OF_THE_MESSAGE = ['signature', 'timestamp'] as const;
const PRINTABLE = /^[\x20-\x7e]+$/;
/** Refusals whose document is read: it may be `requires_3ds` (acp 13.4). */
const READ_REFUSALS: ReadonlySet<number> = new Set([400, 422]);

export type Purpose =
  /** The caller's own POST. `attempt`: the number of the attempt, from 1. */
  | { readonly kind: 'write'; readonly backendKey: string; readonly attempt: number }
  /** The caller's own GET. */
  | { readonly kind: 'read' }
  /** The gateway's own GET, which shows what became of a POST. */
  | { readonly kind: 'read-back' };

/** The address of the backend, and the rules for its answers. */
export interface BackendRules {
  readonly backend: AcpBackend;
  /** Whether a document that contradicts itself or the call is refused, not only reported. */
  readonly strictSemantics: boolean;
  /** Whether a refusal for want of 3D Secure is passed on by its code. */
  readonly authenticationErrors: boolean;
}

/** Why the backend failed, in the closed words of `backend.failed` (contract 1.2 and 6). */
type FailureReason =
  | 'timeout'
  | 'transport'
  | 'aborted'
  | 'response_too_large'
  | 'redirect_not_followed'
  | 'invalid_document';

/** The outcome of an exchange. */
export type Outcome =
  | {
      readonly kind: 'document';
      readonly status: number;
      /** As it came. */
      readonly body: Uint8Array;
      readonly document: JsonObject;
      readonly contradictions: readonly Contradiction[];
    }
  /** The backend refuses the call. `error`: our own words for it, with a status below 500. */
  | { readonly kind: 'refusal'; readonly status: number; readonly error: AcpError }
  | {
      readonly kind: 'failure';
      /** Undefined: certainly nothing happened. */
      readonly why: Unknown | undefined;
      readonly error: AcpError;
      readonly status: number | undefined;
      readonly reason: FailureReason | undefined;
      readonly fault: DocumentFault | undefined;
    };

/**
 * `signal` ends the exchange early: only a caller's own GET may have one, because a POST goes on
 * when its caller leaves. Rejects for a bug alone.
 */
export async function exchangeWithBackend(
  exchange: Exchange,
  rules: BackendRules,
  call: CheckoutCall,
  purpose: Purpose,
  signal?: Cancellation,
): Promise<Outcome> {
  const { backend, strictSemantics } = rules;
  const operation = purpose.kind === 'read-back' ? 'getCheckoutSession' : call.operation;
  const { timeoutMs } = backend.operations[operation];
  const limits = { timeoutMs, maxResponseBytes: MAX_DOCUMENT_BYTES, ...(signal === undefined ? {} : { signal }) };
  const expected = OPERATION_RULES[operation].success;
  let answer: BackendAnswer;
  try {
    answer = await exchange(requestOf(operation, backend, call, purpose), limits);
  } catch (thrown) {
    const status = thrown instanceof BackendError ? thrown.status : undefined;
    // A refusal counts by its status, even if its body is too long or breaks off.
    if (status !== undefined && status !== expected) return refusedOutcome(operation, rules, status);
    return brokenOutcome(thrown, status);
  }
  const { status, headers } = answer;
  if (status !== expected && !READ_REFUSALS.has(status)) {
    // This body is not read: its socket is free at once.
    answer.body.destroy();
    return refusedOutcome(operation, rules, status);
  }
  let body: Uint8Array;
  try {
    body = await collected(answer);
  } catch (thrown) {
    return status === expected ? brokenOutcome(thrown, status) : refusedOutcome(operation, rules, status);
  }
  if (status !== expected) return refusedOutcome(operation, rules, status, body);
  const checked = checkDocument({ operation, sessionId: call.sessionId, strictSemantics, headers, body });
  if (checked.kind === 'valid') return { ...checked, kind: 'document', status, body };
  const { fault } = checked;
  const cause = new Error(`the backend's document is invalid: ${fault.reason} at ${fault.pointer}`);
  return failure({ why: 'invalid_document', status, reason: 'invalid_document', fault, cause });
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

/** The value of a header that came once: of two values the backend may read either one. */
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

const SILENT = 'The merchant did not answer in time: repeat the same request, with the same Idempotency-Key.';
/** The backend turns the gateway itself away: the call did not begin. */
const TURNED_AWAY: ReadonlySet<number> = new Set([401, 403, 429]);

/** `status`: of the head, where the answer broke off after it. */
function brokenOutcome(thrown: unknown, status: number | undefined): Outcome {
  // A bug in the exchange: the request may have been sent.
  const cause = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
  const facts = { status, reason: wireReason(cause.reason), cause } as const;
  if (!cause.requestWritten) return failure({ ...facts, why: undefined });
  if (cause.reason === 'timeout') return failure({ ...facts, why: 'timeout' });
  return failure({ ...facts, why: cause.reason === 'response_too_large' ? 'invalid_document' : 'reset' });
}

/** `body`: undefined where the status is enough, or where the body could not be read. */
function refusedOutcome(operation: Operation, rules: BackendRules, status: number, body?: Uint8Array): Outcome {
  const error = refusalOf(operation, rules, status, body);
  if (error !== undefined) return { kind: 'refusal', status, error };
  return failure({
    why: TURNED_AWAY.has(status) ? undefined : 'status',
    status,
    reason: status >= 300 && status <= 399 ? 'redirect_not_followed' : undefined,
    cause: new Error(`the backend answered ${status}`),
  });
}

/** Undefined for a status that is no refusal of this operation. */
function refusalOf(
  operation: Operation,
  { authenticationErrors }: BackendRules,
  status: number,
  body: Uint8Array | undefined,
): AcpError | undefined {
  switch (status) {
    case 404:
      // No session can be missing yet.
      if (operation === 'createCheckoutSession')
        return new AcpError('checkout_session_not_found', { message: 'The merchant has no route for this operation.' });
      return new AcpError('checkout_session_not_found');
    case 405:
      // For other operations the fault is the backend's: it must serve their method.
      return operation === 'cancelCheckoutSession' ? new AcpError('checkout_session_not_cancelable') : undefined;
    case 409:
      return new AcpError('checkout_session_conflict');
    case 400:
    case 422:
      if (authenticationErrors && requires3ds(body))
        return new AcpError('requires_3ds', { param: '$.authentication_result' });
      return new AcpError('invalid_request_body', { status: 422, message: 'The merchant refused this request.' });
    default:
      return undefined;
  }
}

/**
 * The one code of the backend that is passed on: agents that start 3D Secure need it (acp 13.4).
 */
function requires3ds(body: Uint8Array | undefined): boolean {
  if (body === undefined) return false;
  try {
    const document = parseStrictJson(body);
    const valid = validatorOf('strict', 'Error')(document) === undefined;
    return valid && isObject(document) && document['code'] === 'requires_3ds';
  } catch (thrown) {
    if (thrown instanceof JsonError) return false;
    throw thrown;
  }
}

function failure(facts: {
  readonly why: Unknown | undefined;
  readonly status: number | undefined;
  readonly reason: FailureReason | undefined;
  readonly fault?: DocumentFault | undefined;
  readonly cause: unknown;
}): Outcome {
  const { why, status, reason, fault, cause } = facts;
  const error =
    reason === 'timeout'
      ? new AcpError('service_unavailable', { status: 504, message: SILENT, cause })
      : new AcpError('processing_error', { cause });
  return { kind: 'failure', why, error, status, reason, fault };
}
