import type { Unknown } from '../../checkouts/claims.ts';
import { OPERATION_RULES, type Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import { isObject, type JsonObject } from '../../json/types.ts';
import { CONTRADICTION_PLACES, type Contradiction, checkDocument, type DocumentFault } from './backend-answer.ts';
import type { BackendReply } from './backend-call.ts';
import { AcpError } from './error.ts';
import { validatorOf } from './validation/validator.ts';

/** Why the merchant's side failed, in the closed words of `backend.failed` (contract 1.2 and 6). */
type FailureReason =
  | 'timeout'
  | 'transport'
  | 'aborted'
  | 'response_too_large'
  | 'redirect_not_followed'
  | 'invalid_document';

/** What an exchange with the merchant came to (acp 13.4). */
export type Outcome =
  | {
      readonly kind: 'document';
      readonly status: number;
      /** As it came. */
      readonly body: Uint8Array;
      readonly document: JsonObject;
      readonly contradictions: readonly Contradiction[];
    }
  /** The merchant refuses the call. `error`: our own words for it, below 500. */
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

/** The call that an answer belongs to. */
export interface Asked {
  readonly operation: Operation;
  readonly sessionId: string | undefined;
  /** Whether a contradiction is refused. */
  readonly strictSemantics: boolean;
  /** Whether the caller is told that the merchant wants 3D Secure. */
  readonly authenticationErrors: boolean;
}

const SILENT = 'The merchant did not answer in time: repeat the same request, with the same Idempotency-Key.';
/** The merchant lets the gateway itself in no further: the call did not begin. */
const TURNED_AWAY: ReadonlySet<number> = new Set([401, 403, 429]);

/** Says what came of an exchange. */
export function outcomeOf(asked: Asked, heard: BackendReply): Outcome {
  if (heard.kind === 'failed') return failedOutcome(heard);
  const { status } = heard;
  if (status === OPERATION_RULES[asked.operation].success) return documentOutcome(asked, heard);
  const error = refusalOf(asked, heard);
  if (error !== undefined) return { kind: 'refusal', status, error };
  return failure({
    why: TURNED_AWAY.has(status) ? undefined : 'status',
    status,
    reason: status >= 300 && status <= 399 ? 'redirect_not_followed' : undefined,
    cause: new Error(`the merchant answered ${status}`),
  });
}

function failedOutcome({ reason, status, written, cause }: Extract<BackendReply, { kind: 'failed' }>): Outcome {
  const facts = { status, reason: reason === 'unreachable' ? 'transport' : reason, cause } as const;
  if (!written) return failure({ ...facts, why: undefined });
  if (reason === 'timeout') return failure({ ...facts, why: 'timeout' });
  return failure({ ...facts, why: reason === 'response_too_large' ? 'invalid_document' : 'reset' });
}

function documentOutcome(asked: Asked, { status, headers, body }: Extract<BackendReply, { kind: 'answer' }>): Outcome {
  const { operation, sessionId, strictSemantics } = asked;
  const bytes = body ?? new Uint8Array();
  const checked = checkDocument({ operation, sessionId, headers, body: bytes });
  const fault = checked.kind === 'invalid' ? checked.fault : strictSemantics ? contradicted(checked) : undefined;
  if (checked.kind === 'valid' && fault === undefined) return { ...checked, kind: 'document', status, body: bytes };
  const cause = new Error(`the merchant's document is invalid: ${fault?.reason} at ${fault?.pointer}`);
  return failure({ why: 'invalid_document', status, reason: 'invalid_document', fault, cause });
}

function contradicted({
  contradictions: [first],
}: {
  readonly contradictions: readonly Contradiction[];
}): DocumentFault | undefined {
  if (first === undefined) return undefined;
  return { reason: 'contradiction', pointer: CONTRADICTION_PLACES[first], keyword: first };
}

/** Undefined for a status that says nothing which the caller may hear. */
function refusalOf(
  { operation, authenticationErrors }: Asked,
  { status, body }: Extract<BackendReply, { kind: 'answer' }>,
): AcpError | undefined {
  switch (status) {
    case 404:
      // There is no session yet that could be missing.
      if (operation === 'createCheckoutSession')
        return new AcpError('checkout_session_not_found', { message: 'The merchant has no route for this operation.' });
      return new AcpError('checkout_session_not_found');
    case 405:
      // Elsewhere the agent asked for nothing wrong: the merchant does not serve what it must.
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
 * The one code of the merchant's that can be passed on: agents that start 3D Secure depend on it
 * (acp 13.4).
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
