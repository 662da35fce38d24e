import { validTraceparent, validTracestate } from '../../backend/trace-context.ts';
import { ACP_VERSION } from '../../checkouts/operations.ts';
import type { CheckoutCall } from './call.ts';

/** What an exchange with the merchant is for. */
export type OperationHeaders =
  /** The caller's own POST. `attempt`: the number of the attempt, from 1. */
  | { readonly kind: 'write'; readonly merchantKey: string; readonly attempt: number }
  /** The caller's own GET. */
  | { readonly kind: 'read' }
  /** The gateway wants to know what became of a POST. */
  | { readonly kind: 'read-back' };

/** Fields of the caller's that are told to the merchant, and their greatest lengths. */
const PASSED_ON = { 'accept-language': 256, 'user-agent': 512 } as const;
/** Fields that speak of the caller's own message, so they go with it and with nothing else. */
const OF_THE_MESSAGE = ['signature', 'timestamp'] as const;
const PRINTABLE = /^[\x20-\x7e]+$/;

/**
 * The whole header block of an exchange (acp 13.3), lower-case names. `configured`: the operator's, which nothing overrules. What is
 * not in the table is dropped, whatever it is.
 */
export function operationHeaders(
  call: CheckoutCall,
  errand: OperationHeaders,
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
  if (errand.kind !== 'read-back') for (const name of OF_THE_MESSAGE) pass(name, Number.POSITIVE_INFINITY);
  if (errand.kind === 'write') {
    if (call.body !== undefined && call.contentType !== undefined) headers['content-type'] = call.contentType;
    headers['idempotency-key'] = errand.merchantKey;
    headers['x-attempt'] = String(errand.attempt);
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

/** A field that came twice has no one value, and whoever takes one of them may take another one than the merchant. */
function single(values: readonly string[] | undefined): string | undefined {
  const [value, ...others] = values ?? [];
  return others.length === 0 ? value : undefined;
}
