import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { advanceCall, callAt } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';

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
    const bind = whatIsBought(call.resource.id, request.method, input);
    advanceCall(res, { ...call, stage: 'prepared', input, request, bind });
    next();
  };
}

/** SHA-256 hex over resource, method and the canonical input: equal for every spelling of the same purchase. */
function whatIsBought(resourceId: string, method: string, input: JsonObject): string {
  return createHash('sha256')
    .update(`${resourceId}\0${method}\0${canonicalJson(input)}`)
    .digest('hex');
}
