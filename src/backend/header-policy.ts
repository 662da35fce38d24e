/** Chooses the headers of a backend request, and the headers of its answer for the agent. */

import type { Protocol } from '../events/event.ts';
import type { ReceivedHeaders } from './backend-exchange.ts';
import { validTraceparent, validTracestate } from './trace-context.ts';

/**
 * Facts of a call that the backend learns. Of the caller's headers only those in `caller` and a
 * valid trace context pass.
 */
export interface BackendHeaderFacts {
  /** Header fields of the prepared request: the configured ones, and the media type of the body. */
  readonly configured: Readonly<Record<string, string>>;
  /** The caller's headers of a sale in place, lower-case names; configured ones replace them. */
  readonly caller?: Readonly<Record<string, string>> | undefined;
  /** Media type of the body, when `configured` does not hold it. */
  readonly contentType?: string;
  readonly requestId: string;
  /** As the caller sent it; dropped unless valid. */
  readonly traceparent?: string;
  /** As the caller sent it; dropped unless valid and beside a valid traceparent. */
  readonly tracestate?: string;
  /** Derived from the payment (contract 4.4). */
  readonly idempotencyKey?: string;
  readonly protocol: Protocol;
  readonly resourceId: string;
  readonly payer?: string;
  readonly receiptId?: string;
  /** A JWT about the payment. */
  readonly paymentContext?: string | undefined;
}

/** Fields that hold for one connection (RFC 9110, 7.6.1), announce framing, or are for proxies. */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  ...['connection', 'expect', 'http2-settings', 'keep-alive', 'proxy-authenticate', 'proxy-authentication-info'],
  ...['proxy-authorization', 'proxy-connection', 'te', 'trailer', 'upgrade'],
]);

/** Fields that say where a message ends and whom it is for. */
export const FRAMING_FIELDS: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'host']);

/** Fields that the backend may trust because only the gateway sets them. */
const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  'agent-commerce-client',
  'agent-commerce-payer',
  'agent-commerce-payment',
  'agent-commerce-protocol',
  'agent-commerce-receipt',
  'agent-commerce-resource',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'x-request-id',
]);

/** Whether a field is the exchange's or the gateway's own: no configuration can set it. */
function isOwn(field: string): boolean {
  return CONNECTION_FIELDS.has(field) || FRAMING_FIELDS.has(field) || GATEWAY_FIELDS.has(field);
}

/** All headers of a backend request, lower-case names (contract 3, "headers to the backend"). */
export function backendHeaders(facts: BackendHeaderFacts): Record<string, string> {
  const headers: Record<string, string> = { ...facts.caller };
  for (const [name, value] of Object.entries(facts.configured)) {
    const field = name.toLowerCase();
    if (!isOwn(field)) headers[field] = value;
  }
  if (facts.contentType !== undefined) headers['content-type'] = facts.contentType;
  // Every channel must be able to read the body, and loopback gains nothing from compression.
  headers['accept-encoding'] = 'identity';
  headers['x-request-id'] = facts.requestId;
  headers['agent-commerce-protocol'] = facts.protocol;
  headers['agent-commerce-resource'] = facts.resourceId;
  if (facts.payer !== undefined) headers['agent-commerce-payer'] = facts.payer;
  if (facts.receiptId !== undefined) headers['agent-commerce-receipt'] = facts.receiptId;
  if (facts.paymentContext !== undefined) headers['agent-commerce-payment'] = facts.paymentContext;
  if (facts.idempotencyKey !== undefined) headers['idempotency-key'] = facts.idempotencyKey;
  const { traceparent, tracestate } = facts;
  if (traceparent !== undefined && validTraceparent(traceparent)) {
    headers['traceparent'] = traceparent;
    if (tracestate !== undefined && validTracestate(tracestate)) headers['tracestate'] = tracestate;
  }
  return headers;
}

/** The fields an agent may see. `list`: repeated ones are joined; `single`: the first is taken. */
const RELAYED_FIELDS: ReadonlyMap<string, 'single' | 'list'> = new Map([
  ['content-type', 'single'],
  // For a backend that compresses although identity was asked for: without the label the agent
  // could not read the bytes.
  ['content-encoding', 'list'],
  ['content-language', 'list'],
  ['content-disposition', 'single'],
  ['etag', 'single'],
  ['last-modified', 'single'],
  ['link', 'list'],
  ['retry-after', 'single'],
]);

/** Fields that a free call in place gets too, for ranges. */
const RANGE_FIELDS = ['accept-ranges', 'content-range'] as const;

/** A link to a loopback host: it would tell callers an inner address. */
const INNER_LINK = /<\s*(?:https?:)?[/\\]{2}(?:localhost|127(?:\.\d+){3}|\[::1\])(?:[:/?#]|\s*>)/i;
/** A field value that Node writes: visible ASCII, obs-text, space and tab. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const CONTENT_LENGTH = /^\d{1,15}$/;
/** Statuses without a body: no length is relayed for them either (RFC 9110 8.6). */
export const BODYLESS_STATUSES: ReadonlySet<number> = new Set([204, 304]);

/** A paid answer belongs to its buyer: no cache may serve it to another client. */
export const PAID_CACHE_CONTROL = 'private, no-store';

/**
 * The fields of a delivered answer that go on to the agent, lower-case names (contract 3, "headers
 * relayed to the agent"). `free`: whether the backend decides about caching. `status`: of the
 * answer; without it a body is assumed. `ranges`: a free call in place. A declared length is passed
 * on as it is, because the exchange fails a body that does not match it.
 */
export function relayedHeaders(
  received: ReceivedHeaders,
  call: { readonly free: boolean; readonly status?: number; readonly ranges?: boolean },
): Record<string, string> {
  const nominated = nominatedFields(received['connection']);
  const relayed: Record<string, string> = {};
  const relay = (field: string, kind: 'single' | 'list'): void => {
    const value = nominated.has(field) ? undefined : fieldValue(received[field], kind);
    if (value !== undefined) relayed[field] = value;
  };
  for (const [field, kind] of RELAYED_FIELDS) relay(field, kind);
  if (call.free && call.ranges === true) for (const field of RANGE_FIELDS) relay(field, 'single');
  if (call.free) relay('cache-control', 'list');
  else relayed['cache-control'] = PAID_CACHE_CONTROL;
  const length = received['content-length'];
  const bodyless = call.status !== undefined && BODYLESS_STATUSES.has(call.status);
  if (!bodyless && typeof length === 'string' && CONTENT_LENGTH.test(length)) relayed['content-length'] = length;
  return relayed;
}

function fieldValue(received: ReceivedHeaders[string], kind: 'single' | 'list'): string | undefined {
  if (received === undefined) return undefined;
  const lines = typeof received === 'string' ? [received] : received;
  const value = kind === 'list' ? lines.join(', ') : lines[0];
  return value !== undefined && FIELD_VALUE.test(value) && !INNER_LINK.test(value) ? value : undefined;
}

/** Names that the backend's Connection header declares to be about its own connection. */
function nominatedFields(connection: ReceivedHeaders[string]): ReadonlySet<string> {
  // The values that nearly all backends send name no relayed field.
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return NOTHING_NOMINATED;
  const lines = typeof connection === 'string' ? [connection] : connection;
  return new Set(lines.flatMap((line) => line.split(',')).map((token) => token.trim().toLowerCase()));
}
const NOTHING_NOMINATED: ReadonlySet<string> = new Set();
