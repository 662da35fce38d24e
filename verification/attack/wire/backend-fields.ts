/** The header fields that may reach a backend. */

import type { SampleRequest } from '../../../spec/support/sample-backend.ts';

/**
 * The only fields that the backend may get for a call without payment, over any channel (contract
 * 3, headers to the backend).
 */
export const FIELDS_TO_THE_MERCHANT: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-type',
  'content-length',
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'tracestate',
  'agent-commerce-protocol',
  'agent-commerce-resource',
]);

/** Names as on the wire, in lower case. */
export function fieldNames({ rawHeaders }: SampleRequest): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
}
