import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { Hold, Slots } from '../../server/load-shedding/slots.ts';
import type { Lifecycle } from '../../sidecar/lifecycle.ts';

/**
 * Admits calls while there are places, and none while the gate is closed: a quick 503 keeps the
 * calls that are already inside fast. Operators and probes are outside this cap. A place is given
 * back when the connection is done *and* the work is: a caller who leaves early leaves the work
 * behind. The load shedder looks at the same slots before a body is read; what came in while it was
 * read is seen here.
 */
export function limitConcurrency(gate: { readonly accepting: () => boolean }, places: Slots): RequestHandler {
  return function admitLayer(_req, res, next) {
    if (!gate.accepting() || !places.free())
      throw new GatewayError('GATEWAY_BUSY', { headers: { 'retry-after': '1' } });
    const hold = places.take();
    (res.locals as { hold?: Hold }).hold = hold;
    res.once('close', hold());
    next();
  };
}

/** Keeps the place of the call that this response answers until the result is called. */
function holdSlot(res: Response): () => void {
  return (res.locals as { hold?: Hold }).hold?.() ?? (() => undefined);
}

/**
 * Counts a middleware's work as running until its promise ends, caller or no caller: the process
 * must not stop between a settlement and the delivery it paid for.
 */
export function trackInFlight(lifecycle: Pick<Lifecycle, 'begin'>, layer: RequestHandler): RequestHandler {
  return async function countedLayer(req, res, next) {
    const end = lifecycle.begin();
    const leave = holdSlot(res);
    try {
      await layer(req, res, next);
    } finally {
      end();
      leave();
    }
  };
}

/**
 * Counts every request until its answer is out or its connection gone: the drain waits for those
 * that were let in.
 */
export function countUntilClosed(lifecycle: Pick<Lifecycle, 'begin'>): RequestHandler {
  return function countUntilClosedLayer(_req, res, next) {
    res.once('close', lifecycle.begin());
    next();
  };
}
