/** Takes a token of the client for each call, before every adapter (contract 3). */

import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import type { TokenBuckets } from '../../server/limits/rates.ts';
import { currentCall } from '../call.ts';

/** Puts the token of a call back. */
type GiveBack = () => void;

/**
 * Counts a call before a byte of its body is read and long before a signature is checked. Without a
 * token it is refused with the envelope on every adapter, because the message that a JSON-RPC error
 * would answer has not been read. Every counted answer states what is left
 * (draft-ietf-httpapi-ratelimit-headers-10), so that agents can slow down before.
 */
export function rateLimit(buckets: TokenBuckets, clientOf: ClientOf, onLimited: () => void): RequestHandler {
  const { perSecond, burst } = buckets.rate;
  const policy = `"ip";q=${burst};w=${Math.ceil(burst / perSecond)}`;
  return function rateLimitMiddleware(req, res, next) {
    const client = clientOf(req);
    const { granted, left, fullAfterS, retryAfterS } = buckets.take(client);
    res.setHeader('ratelimit-policy', policy);
    res.setHeader('ratelimit', `"ip";r=${left};t=${granted ? fullAfterS : retryAfterS}`);
    if (!granted) {
      onLimited();
      throw new GatewayError('RATE_LIMITED', { headers: { 'retry-after': String(retryAfterS) } });
    }
    (res.locals as { giveBack?: GiveBack }).giveBack = () => buckets.giveBack(client);
    next();
  };
}

/** Puts the token back when the middleware delivered a paid call: buyers are not limited. */
export function countUnlessPaid(middleware: RequestHandler): RequestHandler {
  return async function countUnlessPaidMiddleware(req, res, next) {
    await middleware(req, res, next);
    const call = currentCall(res);
    const paid = call !== undefined && 'funding' in call && call.funding.kind === 'paid';
    if (paid && res.writableFinished) giveBackOf(res)?.();
  };
}

function giveBackOf(res: Response): GiveBack | undefined {
  return (res.locals as { giveBack?: GiveBack }).giveBack;
}
