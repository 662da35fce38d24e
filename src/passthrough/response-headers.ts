/** Cleans the head of a backend's answer and copies it to the caller. */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { compileFields, namedInConnection } from './field-names.ts';

/**
 * Only the gateway says what a payment became, and how its answers are named. A service worker of
 * the backend's has no say over paths above its own: the console may be there.
 */
const passes = compileFields({
  names: ['x-request-id', 'idempotent-replayed', 'service-worker-allowed'],
  prefixes: ['agent-', 'payment-', 'x-payment'],
});

/** Whether a backend's field goes on to the caller, by its lower-case name. */
export const passesToCaller = passes;

/** Why an answer cannot be relayed, as `details.reason`. */
type UnusableAnswer = 'backend_status' | 'backend_payment_required' | 'backend_framing';

const PAYMENT_REQUIRED = 402;
const NO_CONTENT = 204;
const CONTROL = /[^\t\x20-\x7e\x80-\xff]/;

/** Undefined: the answer can be relayed. An answer of 402 would ask for a payment of its own. */
export function unusableAnswer({ statusCode = 0, headers }: IncomingMessage): UnusableAnswer | undefined {
  if (statusCode < 200 || statusCode > 599) return 'backend_status';
  if (statusCode === PAYMENT_REQUIRED) return 'backend_payment_required';
  const coding = headers['transfer-encoding'];
  return coding === undefined || coding.toLowerCase() === 'chunked' ? undefined : 'backend_framing';
}

/**
 * Replaces the headers of an answer by those that the caller may see, in the answer itself. The
 * transfer coding is that of the caller's connection, so Node decides about it.
 */
export function cleanResponseHeaders(answer: IncomingMessage, publicUrl: (url: string) => string | undefined): void {
  const { headers, statusCode, statusMessage = '' } = answer;
  const named = namedInConnection(headers.connection);
  const cleaned: IncomingHttpHeaders = {};
  for (const name in headers) if (passes(name) && !named.has(name)) cleaned[name] = headers[name];
  delete cleaned['transfer-encoding'];
  if (statusCode === NO_CONTENT) delete cleaned['content-length'];
  for (const name of ['location', 'content-location'] as const) {
    const value = cleaned[name];
    if (value === undefined) continue;
    const replaced = publicUrl(value);
    if (replaced === undefined) delete cleaned[name];
    else cleaned[name] = replaced;
  }
  const { link } = cleaned;
  if (typeof link === 'string') {
    const replaced = publicLinks(link, publicUrl);
    if (replaced === undefined) delete cleaned['link'];
    else cleaned['link'] = replaced;
  }
  answer.headers = cleaned;
  if (CONTROL.test(statusMessage)) answer.statusMessage = '';
}

/** Links (RFC 8288) whose targets callers can reach; undefined: one of them has no public form. */
export function publicLinks(links: string, publicUrl: (url: string) => string | undefined): string | undefined {
  const replaced = links.replace(/<([^>]*)>/g, (_link, url: string) => `<${publicUrl(url.trim()) ?? ''}>`);
  return replaced.includes('<>') ? undefined : replaced;
}

/** Gives the caller the status and the headers of an answer; the connection is its own. */
export function copyHead({ headers, statusCode, statusMessage }: IncomingMessage, res: ServerResponse): void {
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) copyField(res, name, value);
  }
  if (statusCode !== undefined) res.statusCode = statusCode;
  if (statusMessage) res.statusMessage = statusMessage;
}

function copyField(res: ServerResponse, name: string, value: string | readonly string[]): void {
  try {
    res.setHeader(name, value);
  } catch {
    // A field that Node does not write reaches no caller.
  }
}

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
const WITH_AUTHORITY = /^(?:(https?):)?[/\\]{2}([^/\\?#]*)([\s\S]*)$/i;

/** Where the backend is, and what callers know it as. */
interface PublicUrlParts {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly publicBaseUrl: string;
}

/**
 * Compiles the translation of a URL that the backend names into one that callers can reach.
 * Undefined: it names the backend's own address in a way that has no public form. URLs elsewhere
 * and relative ones stay as they are.
 */
export function publicUrls({ origin, pathPrefix, publicBaseUrl }: PublicUrlParts): (url: string) => string | undefined {
  const { host, hostname, protocol, port } = new URL(origin);
  const portPart = port === '' ? '' : `:${port}`;
  const names = LOOPBACK_NAMES.includes(hostname) ? LOOPBACK_NAMES.map((name) => `${name}${portPart}`) : [host];
  const defaultPort = protocol === 'https:' ? ':443' : ':80';
  const own = new Set(port === '' ? names.flatMap((name) => [name, `${name}${defaultPort}`]) : names);
  const base = publicBaseUrl.replace(/\/$/, '');
  const below = (path: string): string | undefined => {
    if (pathPrefix === '') return path;
    return path.startsWith(pathPrefix) && /^[/?#]|^$/.test(path.slice(pathPrefix.length))
      ? path.slice(pathPrefix.length)
      : undefined;
  };
  return function publicUrl(url) {
    const absolute = WITH_AUTHORITY.exec(url);
    if (absolute !== null) {
      if (!own.has((absolute[2] ?? '').toLowerCase())) return url;
      const path = below(absolute[3] ?? '');
      return path === undefined ? undefined : base + path;
    }
    if (pathPrefix === '' || !url.startsWith('/')) return url;
    const path = below(url);
    return path === undefined || path === '' ? url : path;
  };
}
