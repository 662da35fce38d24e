/**
 * Decides what an exchange with the backend came to: a document, a refusal or a failure (acp 13.4).
 * Everything after it (claims, events, the answer to the caller) goes by this outcome.
 */

import { wireReason } from '../../backend/exchange.ts';
import type { Unknown } from '../../checkouts/claims.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import { isObject, type JsonObject } from '../../json/types.ts';
import { type Contradiction, checkDocument, type DocumentFault } from './backend-document.ts';
import type { BackendReply } from './backend-exchange.ts';
import { AcpError } from './error.ts';
import { validatorOf } from './validation/validator.ts';

/** Why the backend failed, in the closed words of `backend.failed` (contract 1.2 and 6). */
type FailureReason =
  | 'timeout'
  | 'transport'
  | 'aborted'
  | 'response_too_large'
  | 'redirect_not_followed'
  | 'invalid_document';

/** What an exchange came to. */
export type Outcome =
  | {
      readonly kind: 'document';
      readonly status: number;
      /** As it came. */
      readonly body: Uint8Array;
      readonly document: JsonObject;
      readonly contradictions: readonly Contradiction[];
    }
  /** The backend refuses the call. `error`: our own words for it, below 500. */
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

/** The call that a reply belongs to. */
interface AskedCall {
  readonly operation: Operation;
  readonly sessionId: string | undefined;
  /** Whether a contradiction is refused. */
  readonly strictSemantics: boolean;
  /** Whether the caller gets to know that the backend wants 3D Secure. */
  readonly authenticationErrors: boolean;
}

const SILENT = 'The merchant did not answer in time: repeat the same request, with the same Idempotency-Key.';
/** The backend turns the gateway itself away: the call did not begin. */
const TURNED_AWAY: ReadonlySet<number> = new Set([401, 403, 429]);

export function outcomeOf(asked: AskedCall, reply: BackendReply): Outcome {
  if (reply.kind === 'failed') return failedOutcome(reply);
  const { status } = reply;
  if (status === OPERATION_RULES[asked.operation].success) return documentOutcome(asked, reply);
  const error = refusalOf(asked, reply);
  if (error !== undefined) return { kind: 'refusal', status, error };
  return failure({
    why: TURNED_AWAY.has(status) ? undefined : 'status',
    status,
    reason: status >= 300 && status <= 399 ? 'redirect_not_followed' : undefined,
    cause: new Error(`the backend answered ${status}`),
  });
}

function failedOutcome({ reason, status, written, cause }: Extract<BackendReply, { kind: 'failed' }>): Outcome {
  const facts = { status, reason: wireReason(reason), cause } as const;
  if (!written) return failure({ ...facts, why: undefined });
  if (reason === 'timeout') return failure({ ...facts, why: 'timeout' });
  return failure({ ...facts, why: reason === 'response_too_large' ? 'invalid_document' : 'reset' });
}

function documentOutcome(
  asked: AskedCall,
  { status, headers, body }: Extract<BackendReply, { kind: 'answer' }>,
): Outcome {
  const bytes = body ?? new Uint8Array();
  const checked = checkDocument({ ...asked, headers, body: bytes });
  if (checked.kind === 'valid') return { ...checked, kind: 'document', status, body: bytes };
  const { fault } = checked;
  const cause = new Error(`the backend's document is invalid: ${fault.reason} at ${fault.pointer}`);
  return failure({ why: 'invalid_document', status, reason: 'invalid_document', fault, cause });
}

/** Undefined for a status that no refusal stands for. */
function refusalOf(
  { operation, authenticationErrors }: AskedCall,
  { status, body }: Extract<BackendReply, { kind: 'answer' }>,
): AcpError | undefined {
  switch (status) {
    case 404:
      // No session can be missing yet.
      if (operation === 'createCheckoutSession')
        return new AcpError('checkout_session_not_found', { message: 'The merchant has no route for this operation.' });
      return new AcpError('checkout_session_not_found');
    case 405:
      // Elsewhere the agent is right: the backend does not serve what it must.
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
