import type { RequestHandler } from 'express';
import { advanceCall, callAt } from '../call.ts';
import { GatewayError } from '../errors.ts';

/** Validates the input and builds the whole backend request, so that nothing about the input can fail after the payment. */
export function validate(): RequestHandler {
  return function validateLayer(_req, res, next) {
    const call = callAt(res, 'resolved');
    const prepared = call.resource.prepare(call.input, call.rawInput);
    if (!prepared.ok)
      throw new GatewayError('INPUT_INVALID', {
        message: 'The input does not fit the input schema of this resource.',
        details: { errors: prepared.problems },
      });
    const { input, request } = prepared;
    advanceCall(res, { ...call, stage: 'prepared', input, request });
    next();
  };
}
