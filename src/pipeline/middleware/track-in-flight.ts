import type { RequestHandler } from 'express';
import type { Lifecycle } from '../../sidecar/lifecycle.ts';
import { holdSlot } from './limit-concurrency.ts';

/**
 * Counts a middleware's work as running until its promise ends, caller or no caller: the process must not stop between a settlement and
 * the delivery it paid for.
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

/** Counts every request until its answer is out or its connection gone: the drain waits for those that were let in. */
export function countUntilClosed(lifecycle: Pick<Lifecycle, 'begin'>): RequestHandler {
  return function countUntilClosedLayer(_req, res, next) {
    res.once('close', lifecycle.begin());
    next();
  };
}
