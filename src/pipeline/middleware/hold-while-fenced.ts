/** Holds calls that need the backend while it restarts alone: before anything is verified. */

import type { NextFunction, RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { Fence } from '../../sidecar/lifecycle.ts';

/** A call that was held for too long is refused; an offer was answered before it came here. */
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

/** What a call is answered that was held in vain. */
function backendRestarts(): GatewayError {
  return new GatewayError('GATEWAY_BUSY', {
    message:
      'The merchant backend restarts, so no payment was taken. Send the same request again, with the same proof.',
    details: { reason: 'backend_unreachable' },
  });
}
