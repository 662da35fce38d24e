/** Why a request is refused before it becomes a call, and the JSON-RPC error that says so. */

import { INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, type RpcError } from '../json-rpc/message.ts';

/**
 * The codes for what A2A defines and this gateway does not serve: in `gateway` (the published
 * interface) all are -32004, in `spec` each is that of A2A 1.0 (section 5.4). Reasons are the same.
 */
export type ErrorProfile = 'gateway' | 'spec';

/** The one code of the `gateway` profile. */
const UNSUPPORTED = -32004;

const REFUSALS = {
  MALFORMED_JSON: { code: PARSE_ERROR, message: 'Invalid JSON payload.' },
  INVALID_REQUEST: { code: INVALID_REQUEST, message: 'Request payload validation error.' },
  PAYLOAD_TOO_LARGE: { code: INVALID_REQUEST, message: 'The request body is too large.' },
  METHOD_NOT_FOUND: { code: METHOD_NOT_FOUND, message: 'Method not found. This agent serves SendMessage.' },
  INVALID_PARAMS: { code: INVALID_PARAMS, message: 'Invalid parameters.' },
  UNSUPPORTED_OPERATION: { code: UNSUPPORTED, specCode: -32004, message: 'This operation is not supported.' },
  VERSION_NOT_SUPPORTED: { code: UNSUPPORTED, specCode: -32009, message: 'Send the header A2A-Version: 1.0.' },
  PUSH_NOTIFICATION_NOT_SUPPORTED: {
    code: UNSUPPORTED,
    specCode: -32003,
    message: 'Push notifications are not supported.',
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    code: UNSUPPORTED,
    specCode: -32005,
    message: 'Send one data part: {"data": {"resource": ..., "input": {...}}, "mediaType": "application/json"}.',
  },
  TASK_NOT_FOUND: {
    code: UNSUPPORTED,
    specCode: -32001,
    message: 'No such task. Tasks are not kept; send a new message.',
  },
} as const;

/** The reason in `google.rpc.ErrorInfo`, equal in both profiles. */
export type RefusalReason = keyof typeof REFUSALS;

/** A request that is not legal or not served. Never a commerce outcome: those are tasks. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** In place of the fixed phrase of the reason. */
  readonly message?: string;
  /** The member of the request that is wrong, and what it must be. */
  readonly violation?: { readonly field: string; readonly description: string };
  /** Further metadata; of the request only its version. */
  readonly facts?: Readonly<Record<string, string>>;
}

/** Parameters that break the rules of SendMessage. `field`: a path from `params`. */
export function badParams(field: string, description: string): Refusal {
  return { reason: 'INVALID_PARAMS', violation: { field, description } };
}

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';
const DOMAIN = 'a2a-protocol.org';

/**
 * A refusal as JSON-RPC error. A2A 1.0, section 9.5: details are ProtoJSON of google.rpc types, and
 * metadata has strings only.
 */
export function rpcError(refusal: Refusal, profile: ErrorProfile, requestId: string): RpcError {
  const { reason, violation, facts } = refusal;
  const rule = REFUSALS[reason];
  const metadata = { requestId, ...facts };
  return {
    code: profile === 'spec' && 'specCode' in rule ? rule.specCode : rule.code,
    message:
      refusal.message ?? (violation === undefined ? rule.message : `${violation.field} ${violation.description}.`),
    data: [
      ...(violation === undefined ? [] : [{ '@type': BAD_REQUEST, fieldViolations: [violation] }]),
      { '@type': ERROR_INFO, reason, domain: DOMAIN, metadata },
    ],
  };
}
