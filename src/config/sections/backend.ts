/** `backend`: where the backend is, and the headers that every request to it has. */

import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { ConfigDocument, HeaderMap } from '../document/document.ts';

/** Set by the gateway or by the transport: a configured copy would contradict them. */
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

/** `pathPrefix` (no trailing slash, often empty) comes before every resource's path. */
export interface BackendBase {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly headers: HeaderMap;
}

/** The backend of the resources. */
export interface Backend extends BackendBase {
  /** With `pathPrefix`; undefined: the probe only opens a connection. */
  readonly probePath: string | undefined;
}

/** Its URL has passed the rules of `fields.ts`. */
export function deriveBackend({ backend }: ConfigDocument, problems: ProblemList): Backend {
  const base = backendBase(backend.baseUrl);
  return {
    ...base,
    probePath: backend.probe === undefined ? undefined : base.pathPrefix + backend.probe.path,
    headers: lowerHeaders(backend.headers ?? {}, 'backend.headers', problems),
  };
}

/** Origin and path of a URL that was checked. */
export function backendBase(baseUrl: string): Omit<BackendBase, 'headers'> {
  const { origin, pathname } = new URL(baseUrl);
  return { origin, pathPrefix: pathname.replace(/\/+$/, '') };
}

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
