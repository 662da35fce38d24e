/** Cleans the headers of a passed request before the proxy copies them to the backend. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { compileFields, namedInConnection } from './field-names.ts';

/** What the gateway itself tells the backend of a request. */
export interface ForwardedFacts {
  /** The caller as trusted proxies saw it. */
  readonly client: string;
  readonly proto: 'http' | 'https';
  readonly requestId: string;
  /** What the backend gets as Host; undefined: the caller's. */
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
 * Fields that servers, frameworks and platforms take another method, path or host from. They would
 * make another request of the one whose path was judged.
 */
const REROUTING = {
  names: ['x-host', 'x-scheme', 'x-url-scheme', 'front-end-https'],
  prefixes: [
    ...['x-original-', 'x-rewrite-', 'x-replaced-', 'x-http-', 'x-method-override', 'x-accel-', 'x-sendfile'],
    ...['x-middleware-', 'x-invoke-', 'x-now-', 'x-astro-', 'x-envoy-', 'x-waws-', 'ms-aspnetcore-'],
  ],
  ends: [
    ...['path', 'path-info', 'path-prefix', 'path-translated', 'script-name', 'request-uri', 'request-url'],
    ...['base-uri', 'base-url', 'url-prefix', 'host-override'],
  ],
} as const;

/** Fields by which a proxy tells the server behind it the caller's address or identity. */
const NAMING = {
  names: ['forwarded', 'x-forwarded', 'x-amzn-request-context', 'x-amzn-lambda-context'],
  prefixes: [
    ...['x-forwarded-', 'proxy', 'x-proxy', 'remote-', 'x-remote-', 'x-appengine-', 'x-arr-', 'x-nf-'],
    ...['x-auth-request-', 'x-auth-user', 'x-authenticated-', 'x-authentik-', 'x-webauth-', 'webauth-'],
    ...['x-consumer-', 'x-credential-', 'x-ms-client-principal', 'x-goog-authenticated-', 'x-amzn-oidc-'],
    ...['oidc-', 'x-oidc-', 'shib-', 'x-shib-', 'mellon-', 'tailscale-', 'x-pomerium-', 'cf-access-'],
    ...['client-cert', 'x-client-cert', 'ssl-', 'x-ssl-', 'x-tls-', 'x-mtls-', 'x-amzn-mtls-'],
  ],
  ends: [
    ...['ip', 'ipv4', 'ipv6', 'clientip', 'socketip', 'realip', 'forwarded-for', 'remote-host'],
    ...['client-addr', 'client-address', 'remote-addr', 'remote-address', 'external-address'],
    ...['user', 'username', 'userid', 'userinfo', 'user-id', 'user-name', 'user-email', 'user-groups', 'user-roles'],
    ...['remote-groups', 'client-cert', 'client-certificate', 'clientcert', 'client-dn', 'client-verify'],
  ],
} as const;

/** Fields that every client sends of itself: configured for sold calls, they are no secret. */
const NEGOTIATION: ReadonlySet<string> = new Set(['accept', 'accept-language', 'user-agent']);

/** Compiles whether a caller's field goes on to the backend, by its lower-case name. */
export function passedFields(settings: {
  /** Lower-case names that pass although they are of a kind that does not. */
  readonly allowed: readonly string[];
  /** Lower-case names that the configuration sets in sold calls, which the backend may trust. */
  readonly configured: readonly string[];
}): (name: string) => boolean {
  const rules = [OWN_FIELDS, REROUTING, NAMING];
  return compileFields({
    names: [...rules.flatMap(({ names }) => names), ...settings.configured.filter((name) => !NEGOTIATION.has(name))],
    prefixes: rules.flatMap(({ prefixes }) => prefixes),
    ends: [...REROUTING.ends, ...NAMING.ends],
    // Gateways to CGI and its heirs read `_` as `-`, and some take SCRIPT_NAME as their own.
    plain: true,
    allowed: new Set(settings.allowed),
  });
}

/** A host with an optional port, as it may be repeated in X-Forwarded-Host. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i;
const DEFAULT_PORTS = { http: '80', https: '443' } as const;
/** What makes a request an upgrade, in its own fields. */
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
  // Again after what `Connection` named: a caller must not remove what the gateway says.
  cleaned['x-request-id'] = facts.requestId;
  cleaned['x-forwarded-for'] = facts.client;
  cleaned['x-forwarded-proto'] = facts.proto;
  const port = HOST.exec(headers.host ?? '');
  if (port !== null) {
    cleaned['x-forwarded-host'] = port[0];
    cleaned['x-forwarded-port'] = port[1] ?? DEFAULT_PORTS[facts.proto];
  }
  if (facts.host !== undefined) cleaned.host = facts.host;
  if (upgrade) Object.assign(cleaned, UPGRADE);
  req.headers = cleaned;
}
