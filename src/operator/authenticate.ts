import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { readHeader } from '../http/headers.ts';

/** Longest operator token, characters. */
const MAX_TOKEN = 512;
const BEARER = /^Bearer +([!-~]+) *$/i;

/**
 * Lets operators through (SPEC part 5). Tokens are compared as digests, in constant time, against every configured one; never from
 * a query parameter. Without a configured token the route does not exist, whatever the request brings.
 */
export function authenticate(adminTokens: readonly string[]): RequestHandler {
  const digests = adminTokens.map(digest);
  return function authenticateLayer(req, _res, next) {
    if (digests.length === 0) throw new GatewayError('NOT_FOUND');
    const header = readHeader(req, 'authorization');
    const token = header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined;
    const presented = digest(token === undefined || token.length > MAX_TOKEN ? '' : token);
    // No early exit: the time must not tell which of the tokens came close.
    let known = false;
    for (const expected of digests) known = timingSafeEqual(presented, expected) || known;
    if (token === undefined || !known)
      throw new GatewayError('UNAUTHORIZED', { headers: { 'www-authenticate': 'Bearer' } });
    next();
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
