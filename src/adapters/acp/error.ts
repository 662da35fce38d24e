/**
 * The failures of the checkout service in the words of ACP: a closed list. Thrown errors of other
 * kinds become one of them here.
 */

import { asGatewayError, type ErrorCode, GatewayError, RETRY_AFTER_SECONDS } from '../../errors.ts';
import type { JsonObject } from '../../json/json.ts';

/** `type` of the Error document (acp 6). A fault of authentication is `invalid_request`. */
type AcpErrorType = 'invalid_request' | 'processing_error' | 'service_unavailable';

interface AcpErrorRule {
  readonly status: number;
  readonly type: AcpErrorType;
  readonly message: string;
}

/** The rule of a failure that the caller caused. */
function invalid(status: number, message: string): AcpErrorRule {
  return { status, type: 'invalid_request', message };
}

/**
 * Every failure that a caller of this adapter can get, by its `code` (acp 13.4); no text of the
 * backend.
 */
export const ACP_ERRORS = {
  not_found: invalid(
    404,
    'No such route. Sessions lie at /checkout_sessions below api_base_url, and an id is one path segment.',
  ),
  method_not_allowed: invalid(405, 'This route does not serve that method.'),
  unauthorized: invalid(401, 'A valid token is required, as Authorization: Bearer <token>.'),
  forbidden: invalid(403, 'This origin or host is not allowed.'),
  missing_api_version: invalid(400, 'The API-Version header is required, with one of supported_versions.'),
  unsupported_api_version: invalid(400, 'This API-Version is not served; supported_versions are.'),
  idempotency_key_required: invalid(
    400,
    'The Idempotency-Key header is required: a new one for each new request, the same for a repeated one.',
  ),
  idempotency_key_invalid: invalid(
    400,
    'The Idempotency-Key header must come once, with 1 to 255 printable ASCII characters.',
  ),
  unsupported_media_type: invalid(415, 'The body must be application/json in UTF-8, without content-encoding.'),
  request_body_too_large: invalid(413, 'The body is larger than 262144 bytes.'),
  invalid_request: invalid(400, 'The request is not well-formed HTTP.'),
  invalid_json: invalid(400, 'The body is not valid I-JSON.'),
  invalid_request_body: invalid(400, 'The body does not match the schema of this operation.'),
  rate_limited: invalid(429, 'Too many requests.'),
  idempotency_in_flight: invalid(
    409,
    'A request with this Idempotency-Key is still running, or its end is not known yet: repeat it after Retry-After.',
  ),
  idempotency_conflict: invalid(
    422,
    'This Idempotency-Key was used with another body: repeat that one, or take a new key.',
  ),
  checkout_session_not_found: invalid(404, 'No such checkout session.'),
  checkout_session_not_cancelable: invalid(405, 'This checkout session cannot be canceled any more.'),
  checkout_session_conflict: invalid(
    409,
    'The state of this checkout session does not allow that now: read the session.',
  ),
  requires_3ds: invalid(422, 'The payment needs 3D Secure: send authentication_result.'),
  processing_error: {
    status: 502,
    type: 'processing_error',
    message: 'The merchant did not give a usable answer: repeat the same request, with the same Idempotency-Key.',
  },
  internal_error: { status: 500, type: 'processing_error', message: 'The gateway failed on its own account.' },
  service_unavailable: {
    status: 503,
    type: 'service_unavailable',
    message: 'The service cannot do this now: repeat the same request in a moment.',
  },
} as const satisfies Record<string, AcpErrorRule>;
export type AcpErrorName = keyof typeof ACP_ERRORS;

/** The facts of one failure that its rule does not have. */
interface AcpErrorFacts {
  /** Instead of the status of the rule: the backend's refusal of a body is 422, its timeout 504. */
  readonly status?: number;
  /** One of our own sentences. */
  readonly message?: string;
  /** JSONPath of the member, never a value. */
  readonly param?: string;
  readonly supportedVersions?: readonly string[];
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log alone. */
  readonly cause?: unknown;
}

/** Holds the whole answer of a failure, except the headers that every answer carries. */
export class AcpError extends Error {
  readonly code: AcpErrorName;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly document: JsonObject;

  constructor(code: AcpErrorName, facts: AcpErrorFacts = {}) {
    const rule = ACP_ERRORS[code];
    const { status = rule.status, message = rule.message, param, supportedVersions, headers = {}, cause } = facts;
    super(message, { cause });
    this.name = 'AcpError';
    this.code = code;
    this.status = status;
    this.headers = headers;
    this.document = {
      type: rule.type,
      // A bug has no code of its own in the protocol.
      code: code === 'internal_error' ? 'processing_error' : code,
      message,
      ...(param === undefined ? {} : { param }),
      ...(supportedVersions === undefined ? {} : { supported_versions: supportedVersions }),
    };
  }
}

/**
 * Codes of the shared middleware. A code that is missing here cannot happen below the mount: it is
 * a bug.
 */
const NAMES: Partial<Readonly<Record<ErrorCode, AcpErrorName>>> = {
  INPUT_INVALID: 'invalid_request',
  FORBIDDEN: 'forbidden',
  NOT_FOUND: 'not_found',
  METHOD_NOT_ALLOWED: 'method_not_allowed',
  PAYLOAD_TOO_LARGE: 'request_body_too_large',
  UNSUPPORTED_MEDIA_TYPE: 'unsupported_media_type',
  RATE_LIMITED: 'rate_limited',
  GATEWAY_BUSY: 'service_unavailable',
  STORAGE_ERROR: 'service_unavailable',
};

/** Anything thrown as an AcpError; the text of a bug stays in `cause`, for the log. */
export function asAcpError(thrown: unknown): AcpError {
  if (thrown instanceof AcpError) return thrown;
  // Express's router cannot percent-decode the path.
  if (thrown instanceof URIError) return new AcpError('invalid_request', { cause: thrown });
  const { code, headers, message, cause } = asGatewayError(thrown);
  const name = thrown instanceof GatewayError ? NAMES[code] : undefined;
  if (name === undefined) return new AcpError('internal_error', { cause: thrown });
  return new AcpError(name, {
    headers,
    cause,
    // Faults in the bytes of a request, or in its framing, have sentences of their own.
    ...(name === 'invalid_request' ? { message } : {}),
  });
}

/** Nothing happened, and the same call may come again soon. */
export function busy(facts: Pick<AcpErrorFacts, 'cause'> = {}): AcpError {
  return new AcpError('service_unavailable', { ...facts, headers: retryAfter(RETRY_AFTER_SECONDS) });
}

/** When a caller may come again. */
export function retryAfter(seconds: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(seconds) };
}
