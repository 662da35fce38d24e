import type { ConfigDocument, HeaderMap } from './document.ts';
import { hostKind, readHttpUrl } from './endpoints.ts';
import { memberPath, type ProblemList } from './problem.ts';

/** The merchant's service: `pathPrefix` (no trailing slash, often empty) stands before every resource's path. */
export interface BackendBase {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly headers: HeaderMap;
}

/**
 * `backend.baseUrl`: this pod only, unless the merchant says otherwise, because a gateway that can be pointed anywhere is an open
 * door into the network. Link-local and metadata addresses are never a merchant.
 */
export function deriveBackend(document: ConfigDocument, problems: ProblemList): BackendBase {
  const { baseUrl, allowNonLoopback = false, headers = {} } = document.backend;
  const lowered = lowerHeaders(headers, 'backend.headers', problems);
  const reading = readHttpUrl(baseUrl, true);
  if (!reading.ok) {
    problems.add('backend.baseUrl', reading.message);
    return { origin: '', pathPrefix: '', headers: lowered };
  }
  const kind = hostKind(reading.url);
  if (kind === 'forbidden')
    problems.add('backend.baseUrl', 'must not name a link-local, metadata, unspecified or multicast address');
  else if (kind === 'other' && !allowNonLoopback)
    problems.add(
      'backend.baseUrl',
      'must be on loopback (127.0.0.1, [::1], localhost), or set backend.allowNonLoopback: true',
    );
  return { origin: reading.url.origin, pathPrefix: reading.url.pathname.replace(/\/+$/, ''), headers: lowered };
}

/** Set by the gateway or by the transport, or names of the hop: a configured copy would contradict them. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'accept-encoding',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'proxy-connection',
  'proxy-authorization',
  'idempotency-key',
  'x-request-id',
  'traceparent',
  'tracestate',
]);
const OWN_PREFIXES: readonly string[] = ['agent-commerce-', 'payment-', 'http2-'];

/** Configured headers in lower case; names that the gateway sets itself are refused. */
export function lowerHeaders(headers: HeaderMap, path: string, problems: ProblemList): HeaderMap {
  const lowered = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (OWN_HEADERS.has(lower) || OWN_PREFIXES.some((prefix) => lower.startsWith(prefix)))
      problems.add(memberPath(path, name), 'is a header that the gateway sets itself; remove it');
    if (lowered.has(lower)) problems.add(memberPath(path, name), 'stands here twice in different case');
    lowered.set(lower, value);
  }
  return Object.fromEntries(lowered);
}
