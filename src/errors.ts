/**
 * The closed list of failures that a caller can get (contract 1.1 and 1.2), and the envelope that
 * carries them. A failure shows no framework page, no thrown message, and of the backend only what
 * `details.backend` may hold.
 */

import type { Json, JsonObject } from './json/json.ts';

interface ErrorRule {
  readonly status: number;
  /**
   * True only if sending the *same* request again can succeed; the thrower may overrule it where
   * contract 1.2 or 4.3 allows that.
   */
  readonly retryable: boolean;
  readonly message: string;
}

export const ERRORS = {
  INPUT_INVALID: { status: 400, retryable: false, message: 'The request is not valid for this operation.' },
  UNAUTHORIZED: { status: 401, retryable: false, message: 'A valid operator token is required.' },
  PAYMENT_REQUIRED: { status: 402, retryable: false, message: 'Payment is required.' },
  PAYMENT_INVALID: { status: 402, retryable: false, message: 'The payment proof was refused.' },
  FORBIDDEN: { status: 403, retryable: false, message: 'This origin is not allowed.' },
  AUTHORIZATION_REQUIRED: { status: 403, retryable: false, message: 'This resource needs a mandate.' },
  AUTHORIZATION_INVALID: { status: 403, retryable: false, message: 'The mandate was refused.' },
  PAYER_BLOCKED: { status: 403, retryable: false, message: 'This merchant takes no payment from this payer.' },
  RESOURCE_NOT_FOUND: {
    status: 404,
    retryable: false,
    message: 'No such resource here. GET /api/resources lists what there is.',
  },
  NOT_FOUND: { status: 404, retryable: false, message: 'No such route.' },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false, message: 'This route does not serve that method.' },
  PAYMENT_REPLAYED: { status: 409, retryable: false, message: 'This payment proof has already been used.' },
  AUTHORIZATION_REPLAYED: { status: 409, retryable: false, message: 'This mandate has already been used.' },
  IDEMPOTENCY_CONFLICT: { status: 409, retryable: false, message: 'This idempotency key belongs to another call.' },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false, message: 'The request body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false, message: 'The request body must be uncompressed JSON.' },
  RATE_LIMITED: { status: 429, retryable: true, message: 'Too many requests.' },
  CONFIG_INVALID: { status: 500, retryable: false, message: 'The gateway is misconfigured.' },
  INTERNAL_ERROR: { status: 500, retryable: false, message: 'The gateway failed on its own account.' },
  PROTOCOL_UNSUPPORTED: { status: 501, retryable: false, message: 'This protocol feature is not served here.' },
  BACKEND_ERROR: { status: 502, retryable: false, message: 'The merchant backend did not deliver.' },
  PAYMENT_SETTLEMENT_FAILED: {
    status: 502,
    retryable: true,
    message: 'The outcome of the settlement is not known yet. Send the same proof again; do not sign a new one.',
  },
  PAYMENT_PROVIDER_UNAVAILABLE: {
    status: 503,
    retryable: true,
    message: 'The payment provider gave no verdict. This request moved no money.',
  },
  AUTHORIZATION_PROVIDER_UNAVAILABLE: { status: 503, retryable: true, message: 'The mandate could not be checked.' },
  GATEWAY_BUSY: { status: 503, retryable: true, message: 'The gateway is busy.' },
  STORAGE_ERROR: { status: 503, retryable: true, message: 'The store is not available. This request moved no money.' },
  BACKEND_TIMEOUT: { status: 504, retryable: true, message: 'The merchant backend took too long.' },
} as const satisfies Record<string, ErrorRule>;

export type ErrorCode = keyof typeof ERRORS;

/** One violated rule of an input: `path` as `$.a.b[0]`, `keyword` of JSON Schema or one of ours. */
export interface InputProblem {
  readonly path: string;
  readonly message: string;
  readonly keyword: string;
}

/** The payment that a 409 or a failed paid call concerns. Amounts in display units. */
export interface PaymentDetails {
  readonly status: string;
  readonly provider: string;
  readonly amount: string;
  readonly currency: string;
  readonly network: string;
  readonly externalReference?: string;
  readonly payer: string;
}

/** The merchant's own words for a failed call. */
export interface ToldByBackend {
  readonly status: number;
  /** Relayed headers, without those of the body; absent where there are none or too many. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Json;
}

/** The non-secret facts of an error (contract 1.1, `details`). */
export interface ErrorDetails {
  readonly errors?: readonly InputProblem[];
  readonly field?: string;
  /** Machine token `^[a-z0-9_.-]{1,64}$`. */
  readonly reason?: string;
  /** The backend's HTTP status. */
  readonly status?: number;
  /** The backend's own words for its failure, JSON of at most 4 KiB. */
  readonly backend?: ToldByBackend;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly required?: readonly string[];
  readonly missing?: readonly string[];
  /** Payment or mandate state. */
  readonly state?: string;
  readonly settlementUncertain?: boolean;
  readonly transactionHash?: string;
  readonly payment?: PaymentDetails;
  /** ISO 8601: the end of the time in which the same proof can collect the paid answer. */
  readonly retryUntil?: string;
  /** The mandate of an envelope that was refused. */
  readonly mandate?: 'checkout' | 'payment';
  /** The type of the violated constraint, of the types that the gateway knows. */
  readonly constraint?: string;
  /** The signed receipt of the refusal (ap2 13). */
  readonly receipt?: string;
}

interface ErrorOptions {
  readonly message?: string;
  readonly details?: ErrorDetails;
  readonly retryable?: boolean;
  /** The challenge for the missing mandate (ap2 7.4). */
  readonly authorization?: JsonObject;
  /**
   * Extra response headers, lower-case names, such as `allow`. Each 503 has `retry-after: 1` unless
   * given.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only; never part of an answer. */
  readonly cause?: unknown;
}

/** When a caller may try again, seconds (contract 1.2). */
export const RETRY_AFTER_SECONDS = 1;
const RETRY_SOON = { 'retry-after': String(RETRY_AFTER_SECONDS) };

/** A failure that a caller gets. `asGatewayError` makes INTERNAL_ERROR of any other error. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;
  readonly details: ErrorDetails | undefined;
  readonly authorization: JsonObject | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    const rule = ERRORS[code];
    super(options.message ?? rule.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.status = rule.status;
    this.retryable = options.retryable ?? rule.retryable;
    this.details = options.details;
    this.authorization = options.authorization;
    this.headers = rule.status === 503 ? { ...RETRY_SOON, ...options.headers } : (options.headers ?? {});
  }
}

/**
 * Builds the JSON body of every failure (contract 1.1). `resourceId`: only for a resource that the
 * caller's channel exposes.
 */
export function errorEnvelope(error: GatewayError, requestId: string, resourceId?: string) {
  return {
    status: 'error' as const,
    code: error.code,
    message: error.message.slice(0, 300),
    retryable: error.retryable,
    requestId,
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(error.authorization === undefined ? {} : { authorization: error.authorization }),
  };
}

/** Anything thrown as a GatewayError: a bug is INTERNAL_ERROR, its text only in `cause`. */
export function asGatewayError(thrown: unknown): GatewayError {
  return thrown instanceof GatewayError ? thrown : new GatewayError('INTERNAL_ERROR', { cause: thrown });
}
