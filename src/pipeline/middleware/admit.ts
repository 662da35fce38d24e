/**
 * Lets calls begin and go on: rate limits before the adapter, slots, the fence while the backend
 * restarts, and the counts that the drain waits for.
 */

import type { NextFunction, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { onceClosed } from '../../server/http/access-record.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import type { Hold, Slots } from '../../server/limits/load-shedding.ts';
import type { TokenBuckets } from '../../server/limits/rates.ts';
import type { Fence, Lifecycle } from '../../sidecar/lifecycle.ts';
import { currentCall } from '../call.ts';

/**
 * Admits calls while there are slots, and none while the gate is closed: a quick 503 keeps the
 * calls that are already inside fast. Operators and probes are outside this limit. A slot is free
 * again when the connection is done *and* the work is: the work goes on when its caller leaves. The
 * load shedder looks at the same slots before a body is read, this middleware after it.
 */
export function limitConcurrency(gate: { readonly accepting: () => boolean }, slots: Slots): RequestHandler {
  return function limitConcurrencyMiddleware(_req, res, next) {
    // Nothing was begun for a caller that left while its request was read.
    if (res.closed || res.destroyed) return;
    if (!gate.accepting() || !slots.free()) throw new GatewayError('GATEWAY_BUSY');
    (res.locals as { hold?: Hold }).hold = slots.takeFor(res);
    next();
  };
}

/** Keeps the slot of the call that this response answers until the result is called. */
function holdSlot(res: Response): () => void {
  return (res.locals as { hold?: Hold }).hold?.() ?? (() => undefined);
}

/**
 * Counts the work of a middleware as running until its promise ends, with or without its caller:
 * the process must not stop between a settlement and the delivery that it paid for.
 */
export function trackInFlight(lifecycle: Pick<Lifecycle, 'begin'>, middleware: RequestHandler): RequestHandler {
  return async function trackInFlightMiddleware(req, res, next) {
    const end = lifecycle.begin();
    const leave = holdSlot(res);
    try {
      await middleware(req, res, next);
    } finally {
      end();
      leave();
    }
  };
}

/** Counts each request until its answer is out or its connection gone: the drain waits for it. */
export function countUntilClosed(lifecycle: Pick<Lifecycle, 'begin'>): RequestHandler {
  return function countUntilClosedMiddleware(_req, res, next) {
    onceClosed(res, lifecycle.begin());
    next();
  };
}

/** Refuses a call that was held for too long. Calls without a proof got their offer earlier. */
export function holdWhileFenced(fence: Pick<Fence, 'up' | 'pass'>): RequestHandler {
  return function holdWhileFencedMiddleware(_req, _res, next) {
    if (fence.up()) return held(fence, next);
    next();
  };
}

async function held(fence: Pick<Fence, 'pass'>, next: NextFunction): Promise<void> {
  if (!(await fence.pass())) throw backendRestarts();
  next();
}

/** The error for a call that was held in vain. */
function backendRestarts(): GatewayError {
  return new GatewayError('GATEWAY_BUSY', {
    message:
      'The merchant backend restarts, so no payment was taken. Send the same request again, with the same proof.',
    details: { reason: 'backend_unreachable' },
  });
}

/** Puts the token of a call back. */
type GiveBack = () => void;

/**
 * Counts a call before a byte of its body is read and long before a signature is checked. Without a
 * token it is refused with the envelope on every adapter, because the message that a JSON-RPC error
 * would answer has not been read. Every counted answer states the tokens left
 * (draft-ietf-httpapi-ratelimit-headers-10), so that agents can slow down in time.
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
