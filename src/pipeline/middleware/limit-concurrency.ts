/**
 * Bounds the calls that a process works on, and counts what the drain has to wait for. `admit` is
 * the first step of a call; the other two wrap middleware that must not be cut off.
 */

import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { onceClosed } from '../../server/http/once-closed.ts';
import type { Hold, Slots } from '../../server/limits/load-shedding.ts';
import type { Lifecycle } from '../../sidecar/lifecycle.ts';

/**
 * Admits calls while there are slots, and none while the gate is closed: a quick 503 keeps the
 * calls that are already inside fast. Operators and probes are outside this limit. A slot is free
 * again when the connection is done *and* the work is: the work goes on when its caller leaves.
 * The load shedder looks at the same slots before a body is read; this looks again after it.
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
