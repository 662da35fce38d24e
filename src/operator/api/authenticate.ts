import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { ownersOf } from '../../server/http/bearer.ts';
import { readHeader } from '../../server/http/headers.ts';
import { clientNetwork } from '../../server/rate-limit/client-address.ts';
import { countFailedAttempts, type Guesses } from '../../server/rate-limit/failed-attempts.ts';

/** The longest operator token has 512 characters. */
const BEARER = /^Bearer +([!-~]{1,512}) *$/i;

/**
 * Lets operators through (specification 5). Tokens are compared as digests, in constant time, against every configured one; never from
 * a query parameter. Without a configured token the route does not exist, whatever the request brings: it leaves its router on the
 * way of every unknown one. A client with too many wrong tokens is told to wait; a right one always passes, because behind an ingress
 * operators and those who guess may have one address.
 */
export function authenticate(adminTokens: readonly string[], guesses: Guesses = {}): RequestHandler {
  const { clientOf = clientNetwork(0), wrongTries = countFailedAttempts(), onLimited = () => undefined } = guesses;
  const isOperator = ownersOf(adminTokens.map((token) => ({ token, owner: true })));
  return function authenticateLayer(req, _res, next) {
    if (adminTokens.length === 0) {
      next('router');
      return;
    }
    const header = readHeader(req, 'authorization');
    if (isOperator(header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined)) {
      next();
      return;
    }
    // Who brings nothing guesses nothing.
    const waitS = header.kind === 'absent' ? undefined : wrongTries.note(clientOf(req));
    if (waitS === undefined) throw new GatewayError('UNAUTHORIZED', { headers: { 'www-authenticate': 'Bearer' } });
    onLimited();
    throw new GatewayError('RATE_LIMITED', {
      message: 'Too many wrong operator tokens.',
      headers: { 'retry-after': String(waitS) },
    });
  };
}
