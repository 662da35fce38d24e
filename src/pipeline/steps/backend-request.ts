/** The request to the backend of a prepared call, with the headers that the gateway adds. */

import type { BackendRequest } from '../../backend/exchange.ts';
import { backendHeaders } from '../../backend/header-policy.ts';
import { protocolOf } from '../../events/event.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { backendIdempotencyKey } from '../../payments/settlement/terms.ts';
import type { PreparedCall } from '../call.ts';

/** What of a call its request is made of. */
type Requesting = Pick<PreparedCall, 'request' | 'requestId' | 'trace' | 'channel' | 'inPlace'> & {
  readonly resource: Pick<PreparedCall['resource'], 'id'>;
};

/** `paid`: the payment of the call; undefined for a free one. */
export function requestToBackend(call: Requesting, paid: PaymentRecord | undefined): BackendRequest {
  const { request, requestId, trace, channel, resource } = call;
  const conditions = conditionsOf(call, paid);
  const headers = backendHeaders({
    configured: request.headers,
    caller: conditions === undefined ? request.callerHeaders : { ...request.callerHeaders, ...conditions },
    requestId,
    protocol: protocolOf(channel),
    resourceId: resource.id,
    ...(trace.traceparent === undefined ? {} : { traceparent: trace.traceparent }),
    ...(trace.tracestate === undefined ? {} : { tracestate: trace.tracestate }),
    ...(paid === undefined
      ? {}
      : { payer: paid.payer, receiptId: paid.receiptId, idempotencyKey: backendIdempotencyKey(paid.payId) }),
  });
  return { ...request, headers };
}

/** What a free call in place asks of the backend's caches; undefined: nothing. */
export function conditionsOf(
  { inPlace }: Pick<PreparedCall, 'inPlace'>,
  paid: PaymentRecord | undefined,
): Readonly<Record<string, string>> | undefined {
  if (paid !== undefined || inPlace === undefined) return undefined;
  return Object.keys(inPlace.conditions).length === 0 ? undefined : inPlace.conditions;
}
