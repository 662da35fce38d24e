import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../errors.ts';

/** Keeps a call's place; the result gives it back. */
type Hold = () => () => void;

/**
 * Admits at most `maxInFlight` agent calls at a time and none while the gate is closed: a quick 503 keeps the calls that are
 * already inside fast. Operators and probes are outside this cap. A place is given back when the connection is done *and* the work
 * is: a caller who leaves early leaves the work behind.
 */
export function admit(gate: { readonly accepting: () => boolean }, maxInFlight: number): RequestHandler {
  let inFlight = 0;
  return function admitLayer(_req, res, next) {
    if (!gate.accepting() || inFlight >= maxInFlight)
      throw new GatewayError('GATEWAY_BUSY', { headers: { 'retry-after': '1' } });
    inFlight += 1;
    let holds = 0;
    const hold: Hold = () => {
      holds += 1;
      return () => {
        holds -= 1;
        if (holds === 0) inFlight -= 1;
      };
    };
    (res.locals as { hold?: Hold }).hold = hold;
    res.once('close', hold());
    next();
  };
}

/** Keeps the place of the call that this response answers until the result is called. */
export function holdPlace(res: Response): () => void {
  return (res.locals as { hold?: Hold }).hold?.() ?? (() => undefined);
}
