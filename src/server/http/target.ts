/** Reads request targets, and the middleware that decides by path and method. */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';

/** The origin before the path in a target of absolute form (RFC 9112, 3.2.2), and its host. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * A request target without the origin that proxies get (RFC 9112, 3.2.2), beginning with a slash;
 * `*` as it is. Nothing is decoded, and no empty segment is removed.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  const rest = target.replace(ORIGIN, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The host of a target in absolute form, which precedes the Host header; else undefined. */
export function targetHost(target: string): string | undefined {
  return ORIGIN.exec(target)?.[1];
}

/** The path of a request target as it was sent. */
export function rawPath(target: string): string {
  const path = originForm(target);
  const at = path.indexOf('?');
  return at === -1 ? path : path.slice(0, at);
}

/** What follows the mount in a raw path, empty or from its slash on; undefined if not below it. */
export function belowMount(mountPath: string, path: string): string | undefined {
  if (!path.startsWith(mountPath)) return undefined;
  return path.length === mountPath.length || path[mountPath.length] === '/' ? path.slice(mountPath.length) : undefined;
}

const ENCODED_SLASH = /%2f/i;

/**
 * Refuses encoded slashes: the router decodes before it matches, and would take one as part of an
 * id. `except`: a mount whose adapter matches raw paths, and whose ids may have slashes.
 */
export function refuseEncodedSlash(except?: string): RequestHandler {
  return function refuseEncodedSlash(req, _res, next) {
    const matched = except !== undefined && belowMount(except, rawPath(req.url)) !== undefined;
    if (!matched && ENCODED_SLASH.test(req.path)) throw new GatewayError('NOT_FOUND');
    next();
  };
}

/** Answers 405 for a method that no earlier handler of the path serves. */
export function allowOnly(...methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return function methodNotAllowed() {
    throw new GatewayError('METHOD_NOT_ALLOWED', { message: `This route serves ${allow}.`, headers: { allow } });
  };
}

/**
 * Enters a router only for these paths and those below them. A router in which nothing matches
 * passes a request on in a later turn of the event loop, so every call behind it would wait for a
 * turn, and would be counted as in flight only then.
 */
export function belowPath(paths: readonly string[], router: RequestHandler): RequestHandler {
  return function belowPath(req, res, next) {
    const { path } = req;
    if (paths.some((above) => path.startsWith(above) && (path.length === above.length || path[above.length] === '/')))
      router(req, res, next);
    else next();
  };
}
