/** Checks which hosts are served and which pages of browsers may call, before any route. */

import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { readHeader, singleHeader, targetHost } from './request.ts';

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers':
    'content-type, payment-signature, agent-authorization, idempotency-key, x-request-id, authorization, a2a-version, ' +
    'api-version, request-id, mcp-protocol-version, mcp-method, mcp-name, a2a-extensions, x-a2a-extensions, ' +
    'last-event-id, access-control-expose-headers',
  'access-control-max-age': '600',
} as const;
const EXPOSED =
  'payment-required, payment-response, x-request-id, retry-after, idempotent-replayed, agent-authorization-receipt';

/** The fields that let a page of an origin read an answer. */
export function corsFields(origin: string): Readonly<Record<string, string>> {
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED };
}

/** The requests that pages may make at the backend's own addresses (contract 7.4). */
export interface PreflightInPlace {
  /** The methods of the address that a request came to; undefined: it is the gateway's own. */
  methodsOf(res: Response): string | undefined;
  /** Request headers that have a meaning there, lower-case names. */
  readonly headers: readonly string[];
}

const NOTHING_IN_PLACE: PreflightInPlace = { methodsOf: () => undefined, headers: [] };

/**
 * Admits browsers from listed origins only, compared exactly (contract 3, CORS). A request without
 * an Origin is an agent's and gets no CORS headers, nor does a page of the gateway's own public
 * origin, which needs none. Any other Origin is refused, so that a page cannot use a gateway that
 * did not list it, under any name in DNS. `moreHeaders`: request headers that pages may also send.
 * A page may send no cookie of the merchant's: no credentials are allowed.
 */
export function checkOrigin(
  allowedOrigins: readonly string[],
  publicBaseUrl: string,
  moreHeaders: readonly string[] = [],
  inPlace: PreflightInPlace = NOTHING_IN_PLACE,
): RequestHandler {
  const allowed = new Set(allowedOrigins);
  const own = new URL(publicBaseUrl).origin;
  const preflight = {
    ...PREFLIGHT,
    'access-control-allow-headers': [PREFLIGHT['access-control-allow-headers'], ...moreHeaders].join(', '),
  };
  const headersInPlace = [preflight['access-control-allow-headers'], ...inPlace.headers].join(', ');
  const preflightAt = (methods: string) => ({
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headersInPlace,
  });
  const isOwn = (origin: string): boolean => origin.toLowerCase() === own && !allowed.has(own);
  return function checkOrigin(req, res, next) {
    const origin = readHeader(req, 'origin');
    if (allowed.size > 0) res.setHeader('vary', 'Origin');
    if (origin.kind === 'absent' || (origin.kind === 'single' && isOwn(origin.value))) {
      next();
      return;
    }
    if (origin.kind === 'repeated' || !allowed.has(origin.value.toLowerCase())) throw new GatewayError('FORBIDDEN');
    for (const [name, value] of Object.entries(corsFields(origin.value))) res.setHeader(name, value);
    if (req.method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined) {
      const methods = inPlace.methodsOf(res);
      res.writeHead(204, methods === undefined ? preflight : { ...preflight, ...preflightAt(methods) });
      res.end();
      return;
    }
    next();
  };
}

/**
 * Admits listed hosts only, compared as text with their port; case does not count. `allowedHosts`
 * undefined: every host. Probes are answered before this check.
 */
export function checkHost(allowedHosts: readonly string[] | undefined): RequestHandler {
  const allowed = allowedHosts === undefined ? undefined : new Set(allowedHosts.map((host) => host.toLowerCase()));
  return function checkHost(req, _res, next) {
    if (allowed !== undefined) {
      const host = singleHeader(req, 'host');
      const target = targetHost(req.originalUrl) ?? host;
      if (
        host === undefined ||
        target === undefined ||
        ![host, target].every((name) => allowed.has(name.toLowerCase()))
      )
        throw new GatewayError('FORBIDDEN', { message: 'This host is not served here.' });
    }
    next();
  };
}
