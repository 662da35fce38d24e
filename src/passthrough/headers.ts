/**
 * Cleans the headers that pass between caller and backend: some fields never pass, in any spelling
 * of their names.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { CONNECTION_FIELDS, FRAMING_FIELDS } from '../backend/header-policy.ts';

const SEPARATOR = /[^a-z0-9]/g;

/**
 * The name as gateways to CGI and its heirs see it: there every separator is the same, so
 * `payment_signature` reaches an application as `payment-signature` does.
 */
function canonicalName(name: string): string {
  return name.toLowerCase().replace(SEPARATOR, '-');
}

/** Fields that do not pass: names and parts of names, canonical. */
interface FieldRule {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
  /** Last words of names: `client-ip` is also the end of `x-client-ip`. */
  readonly ends?: readonly string[];
  /** Whether only names of letters, digits and hyphens pass. */
  readonly plain?: boolean;
  /** Lower-case names, in this spelling alone, that the rest of the rule does not concern. */
  readonly allowed?: ReadonlySet<string>;
}

/**
 * Compiles the test whether a field passes, by its lower-case name. Callers' names are many and
 * repeat, so the verdict is kept for the first `KEPT_VERDICTS` of them.
 */
function compileFields(rule: FieldRule): (name: string) => boolean {
  const { names, prefixes, ends = [], plain = false, allowed } = rule;
  const dropped = new Set(names);
  const lastWords = ends.map((end) => `-${end}`);
  const verdicts = new Map<string, boolean>();
  const judge = (name: string): boolean => {
    // Framing stays even if `Connection` names it: without its length the body of a GET would be
    // read as the next request.
    if (FRAMING_FIELDS.has(name)) return true;
    const canonical = canonicalName(name);
    if (CONNECTION_FIELDS.has(canonical) || FRAMING_FIELDS.has(canonical)) return false;
    if (allowed?.has(name)) return true;
    if (dropped.has(canonical) || (plain && name !== canonical)) return false;
    if (prefixes.some((prefix) => canonical.startsWith(prefix))) return false;
    return !lastWords.some((end) => `-${canonical}`.endsWith(end));
  };
  return function passes(name) {
    const known = verdicts.get(name);
    if (known !== undefined) return known;
    const verdict = judge(name);
    if (verdicts.size < KEPT_VERDICTS) verdicts.set(name, verdict);
    return verdict;
  };
}

/** Names beyond this count are judged each time: a caller may invent any number of them. */
const KEPT_VERDICTS = 512;

const NONE: ReadonlySet<string> = new Set();

/** Fields that `Connection` names as those of one connection, lower-case; never framing. */
function namedInConnection(value: string | undefined): ReadonlySet<string> {
  // Nearly every `Connection` names no field that passes.
  if (value === undefined || value === 'keep-alive' || value === 'close') return NONE;
  const tokens = value.split(',').map((token) => token.trim().toLowerCase());
  return new Set(tokens.filter((token) => !FRAMING_FIELDS.has(token)));
}

/** Fields that mean something only in a head (RFC 9110, 6.5.1), beside those that never pass. */
const HEAD_FIELDS: ReadonlySet<string> = new Set([
  ...['authorization', 'cache-control', 'content-encoding', 'content-range', 'content-type', 'cookie', 'location'],
  ...['age', 'date', 'expires', 'max-forwards', 'range', 'retry-after', 'set-cookie', 'vary', 'www-authenticate'],
]);

/** The trailers of a message that may pass. `passes`: the test for its headers. */
export function passedTrailers(
  trailers: NodeJS.Dict<string>,
  passes: (name: string) => boolean,
): readonly [name: string, value: string][] {
  return Object.entries(trailers).flatMap(([name, value]): [string, string][] =>
    value === undefined || FRAMING_FIELDS.has(name) || HEAD_FIELDS.has(name) || !passes(name) ? [] : [[name, value]],
  );
}

/** Facts of a request that the gateway itself tells the backend. */
export interface ForwardedFacts {
  /** The caller as trusted proxies saw it. */
  readonly client: string;
  readonly proto: 'http' | 'https';
  readonly requestId: string;
  /** The Host that the backend gets; undefined: the caller's. */
  readonly host: string | undefined;
  /** Whether a caller's field passes, by its lower-case name. */
  readonly passes: (name: string) => boolean;
}

/** Fields that the gateway itself sets or reads: no configuration lets a caller's pass. */
const OWN_FIELDS = {
  names: ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-request-id'],
  prefixes: ['agent-commerce-', 'agent-authorization', 'payment-', 'x-payment'],
} as const;

/** Whether a field of callers may be allowed to pass, by its lower-case name. */
export const mayBeAllowed = compileFields(OWN_FIELDS);

/**
 * Fields from which servers, frameworks and platforms take another method, path or host: the
 * backend would serve another request than the judged one. And fields by which a proxy tells the
 * server behind it the caller's address or identity.
 */
const BELIEVED = {
  names: [
    ...['x-host', 'x-scheme', 'x-url-scheme', 'front-end-https', 'forwarded', 'x-forwarded'],
    ...['x-amzn-request-context', 'x-amzn-lambda-context'],
  ],
  prefixes: [
    ...['x-original-', 'x-rewrite-', 'x-replaced-', 'x-http-', 'x-method-override', 'x-accel-', 'x-sendfile'],
    ...['x-middleware-', 'x-invoke-', 'x-now-', 'x-astro-', 'x-envoy-', 'x-waws-', 'ms-aspnetcore-'],
    ...['x-forwarded-', 'proxy', 'x-proxy', 'remote-', 'x-remote-', 'x-appengine-', 'x-arr-', 'x-nf-'],
    ...['x-auth-request-', 'x-auth-user', 'x-authenticated-', 'x-authentik-', 'x-webauth-', 'webauth-'],
    ...['x-consumer-', 'x-credential-', 'x-ms-client-principal', 'x-goog-authenticated-', 'x-amzn-oidc-'],
    ...['oidc-', 'x-oidc-', 'shib-', 'x-shib-', 'mellon-', 'tailscale-', 'x-pomerium-', 'cf-access-'],
    ...['client-cert', 'x-client-cert', 'ssl-', 'x-ssl-', 'x-tls-', 'x-mtls-', 'x-amzn-mtls-'],
  ],
  ends: [
    ...['path', 'path-info', 'path-prefix', 'path-translated', 'script-name', 'request-uri', 'request-url'],
    ...['base-uri', 'base-url', 'url-prefix', 'host-override'],
    ...['ip', 'ipv4', 'ipv6', 'clientip', 'socketip', 'realip', 'forwarded-for', 'remote-host'],
    ...['client-addr', 'client-address', 'remote-addr', 'remote-address', 'external-address'],
    ...['user', 'username', 'userid', 'userinfo', 'user-id', 'user-name', 'user-email', 'user-groups', 'user-roles'],
    ...['remote-groups', 'client-cert', 'client-certificate', 'clientcert', 'client-dn', 'client-verify'],
  ],
} as const;

/** Fields that every client sends: they pass even if the configuration sets them in sold calls. */
const NEGOTIATION: ReadonlySet<string> = new Set(['accept', 'accept-language', 'user-agent']);

/** Compiles whether a caller's field goes on to the backend, by its lower-case name. */
export function passedFields(settings: {
  /** Lower-case names that pass although they are of a kind that does not. */
  readonly allowed: readonly string[];
  /** Lower-case names that the configuration sets in sold calls, which the backend may trust. */
  readonly configured: readonly string[];
}): (name: string) => boolean {
  const configured = settings.configured.filter((name) => !NEGOTIATION.has(name));
  return compileFields({
    names: [...OWN_FIELDS.names, ...BELIEVED.names, ...configured],
    prefixes: [...OWN_FIELDS.prefixes, ...BELIEVED.prefixes],
    ends: BELIEVED.ends,
    // Gateways to CGI and its heirs read `_` as `-`, and some take SCRIPT_NAME as their own.
    plain: true,
    allowed: new Set(settings.allowed),
  });
}

const DEFAULT_PORTS = { http: '80', https: '443' } as const;
/** Fields that make a request an upgrade. */
const UPGRADE = { connection: 'Upgrade', upgrade: 'websocket' } as const;

/**
 * Replaces the headers of a request by those that the backend may see. They are replaced in the
 * request itself, because the proxy copies them from there in every case. `upgrade`: it asks for a
 * WebSocket, which the backend must see.
 */
export function cleanRequestHeaders(req: IncomingMessage, facts: ForwardedFacts, upgrade = false): void {
  const { headers } = req;
  const named = namedInConnection(headers.connection);
  const cleaned: IncomingHttpHeaders = {};
  for (const name in headers) if (facts.passes(name) && !named.has(name)) cleaned[name] = headers[name];
  // Set after the filter: `Connection` of a caller must not remove the gateway's fields.
  cleaned['x-request-id'] = facts.requestId;
  cleaned['x-forwarded-for'] = facts.client;
  cleaned['x-forwarded-proto'] = facts.proto;
  // Host is a name or an address with an optional port: other values are refused before.
  if (headers.host) {
    cleaned['x-forwarded-host'] = headers.host;
    cleaned['x-forwarded-port'] = /:(\d+)$/.exec(headers.host)?.[1] ?? DEFAULT_PORTS[facts.proto];
  }
  if (facts.host !== undefined) cleaned.host = facts.host;
  if (upgrade) Object.assign(cleaned, UPGRADE);
  req.headers = cleaned;
}

/**
 * Whether a backend's field goes on to the caller, by its lower-case name. Only the gateway reports
 * payments, repeated answers and request ids. A service worker of the backend controls no path
 * above its own: the console may be there.
 */
export const passesToCaller = compileFields({
  names: ['x-request-id', 'idempotent-replayed', 'service-worker-allowed'],
  prefixes: ['agent-', 'payment-', 'x-payment'],
});

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
  for (const name in headers) if (passesToCaller(name) && !named.has(name)) cleaned[name] = headers[name];
  delete cleaned['transfer-encoding'];
  if (statusCode === NO_CONTENT) delete cleaned['content-length'];
  for (const name of ['location', 'content-location', 'link'] as const) {
    const value = cleaned[name];
    if (typeof value !== 'string') continue;
    const replaced = name === 'link' ? publicLinks(value, publicUrl) : publicUrl(value);
    if (replaced === undefined) delete cleaned[name];
    else cleaned[name] = replaced;
  }
  answer.headers = cleaned;
  if (CONTROL.test(statusMessage)) answer.statusMessage = '';
}

/** Links (RFC 8288) whose targets callers can reach; undefined: one of them has no public form. */
export function publicLinks(links: string, publicUrl: (url: string) => string | undefined): string | undefined {
  const replaced = links.replace(/<([^>]*)>/g, (_link, url: string) => `<${publicUrl(url.trim()) ?? ''}>`);
  return replaced.includes('<>') ? undefined : replaced;
}

/** Copies the status and the headers of an answer to the response for the caller. */
export function copyHead({ headers, statusCode, statusMessage }: IncomingMessage, res: ServerResponse): void {
  for (const name in headers) {
    const value = headers[name];
    try {
      if (value !== undefined) res.setHeader(name, value);
    } catch {
      // A field that Node does not write reaches no caller.
    }
  }
  if (statusCode !== undefined) res.statusCode = statusCode;
  if (statusMessage) res.statusMessage = statusMessage;
}

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
const WITH_AUTHORITY = /^(?:(https?):)?[/\\]{2}([^/\\?#]*)([\s\S]*)$/i;

/**
 * Compiles the translation of a URL that the backend names into one that callers can reach.
 * Undefined: it names the backend's own address in a way that has no public form. URLs elsewhere
 * and relative ones stay as they are.
 */
export function publicUrls(
  origin: string,
  pathPrefix: string,
  publicBaseUrl: string,
): (url: string) => string | undefined {
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
