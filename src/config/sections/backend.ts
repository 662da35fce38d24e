/** `backend`: where the backend is, and the headers that every request to it has. */

import { mayBeAllowed } from '../../passthrough/headers.ts';
import { type PassthroughSettings, USUALLY_INTERNAL } from '../../passthrough/settings.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { comparisonFault, readTemplate } from '../../resources/url-template.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';

const PASSTHROUGH_AT = 'backend.passthrough';

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

type HeaderMap = GatewayConfig['backend']['headers'];

/** `pathPrefix` (no trailing slash, often empty) comes before every resource's path. */
export interface BackendBase {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly headers: HeaderMap;
}

/** The backend of the resources, as in `GatewayConfig`. */
type Backend = GatewayConfig['backend'];

/** Derives `backend`; `checkForms` has checked its URL if the schema accepted it. */
export function deriveBackend({ backend, signing }: ConfigDocument, problems: ProblemList): Backend | undefined {
  if (!problems.readable('backend')) return undefined;
  const headers = problems.sound('backend.headers') && lowerHeaders(backend.headers, 'backend.headers', problems);
  if (backend.paymentContext && signing === undefined)
    problems.add('backend.paymentContext', 'must be false, or needs signing.key: the key signs what the backend gets');
  const passthrough = derivePassthrough(backend.passthrough, problems);
  if (headers === false || !problems.sound('backend')) return undefined;
  const base = backendBase(backend.baseUrl);
  return {
    ...base,
    probePath: backend.probe === undefined ? undefined : base.pathPrefix + backend.probe.path,
    headers,
    passthrough,
    originHeaders: backend.originHeaders,
    paymentContext: backend.paymentContext,
  };
}

/** The passthrough; undefined where it is off. Its templates are relative to the base URL. */
function derivePassthrough(
  document: ConfigDocument['backend']['passthrough'],
  problems: ProblemList,
): PassthroughSettings | undefined {
  if (!problems.sound(PASSTHROUGH_AT) || document === undefined || !document.enabled) return undefined;
  const { enabled: _enabled, include, exclude, ...others } = document;
  const { allow, allowHeaders } = others;
  for (const [name, templates] of Object.entries({ include, exclude, allow }))
    for (const [index, template] of (templates ?? []).entries()) {
      const fault = passedTemplateFault(template);
      if (fault !== undefined) problems.add(memberPath(`${PASSTHROUGH_AT}.${name}`, index), fault);
    }
  for (const [index, name] of allowHeaders.entries())
    if (!mayBeAllowed(name.toLowerCase()))
      problems.add(
        memberPath(`${PASSTHROUGH_AT}.allowHeaders`, index),
        'is a header that the gateway sets or reads itself; remove it',
      );
  return {
    ...others,
    include,
    allowHeaders: allowHeaders.map((name) => name.toLowerCase()),
    exclude: exclude ?? (include === undefined ? USUALLY_INTERNAL : []),
  };
}

function passedTemplateFault(template: string): string | undefined {
  const reading = readTemplate(template);
  if (!reading.ok) return reading.message;
  if (template.includes('?')) return 'must have no query: a path is passed with any';
  if (template.includes('*')) return 'has a *, which is ordinary text here: a path stands for all below it';
  return comparisonFault(template);
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
