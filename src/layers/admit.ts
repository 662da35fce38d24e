import type { RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';

/**
 * Admits at most `maxInFlight` agent calls at a time and none while the gate is closed: a quick 503 keeps the calls that are
 * already inside fast. Operators and probes are outside this cap.
 */
export function admit(gate: { readonly accepting: () => boolean }, maxInFlight: number): RequestHandler {
  let inFlight = 0;
  return function admitLayer(_req, res, next) {
    if (!gate.accepting() || inFlight >= maxInFlight)
      throw new GatewayError('GATEWAY_BUSY', { headers: { 'retry-after': '1' } });
    inFlight += 1;
    res.once('close', () => {
      inFlight -= 1;
    });
    next();
  };
}
