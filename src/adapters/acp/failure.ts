import { asGatewayError, type ErrorCode, GatewayError } from '../../errors.ts';
import { RETRY_AFTER_SECONDS } from '../../server/load-shedding/busy-answer.ts';
import { AcpError, type AcpErrorFacts, type AcpErrorName } from './error.ts';

/** What the shared middleware throws, in the words of ACP. Whatever is not named here cannot happen below the mount: it is a bug. */
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

/** Anything thrown becomes an AcpError; the text of a bug stays in `cause`, for the log. */
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
    // What is wrong with the bytes of a request, or with its framing, has sentences of its own.
    ...(name === 'invalid_request' ? { message } : {}),
  });
}

/** Nothing was done, and the same call may come again soon. */
export function busy(facts: Pick<AcpErrorFacts, 'cause'> = {}): AcpError {
  return new AcpError('service_unavailable', { ...facts, headers: retryAfter(RETRY_AFTER_SECONDS) });
}

/** When a caller may come again. */
export function retryAfter(seconds: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(seconds) };
}
