import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { belowMount, rawPath } from './target.ts';

const ENCODED_SLASH = /%2f/i;

/**
 * The router decodes before it matches, so an encoded slash would look like a part of an id: no route has one. `except`: a mount whose
 * adapter matches raw paths, and whose ids may have slashes.
 */
export function refuseEncodedSlash(except?: string): RequestHandler {
  return function encodedSlash(req, _res, next) {
    const matched = except !== undefined && belowMount(except, rawPath(req.url)) !== undefined;
    if (!matched && ENCODED_SLASH.test(req.path)) throw new GatewayError('NOT_FOUND');
    next();
  };
}

/** Ends a known path: whatever method comes this far is not served there. */
export function allowOnly(...methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return function methodNotAllowed() {
    throw new GatewayError('METHOD_NOT_ALLOWED', { message: `This route serves ${allow}.`, headers: { allow } });
  };
}
