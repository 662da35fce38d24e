/** Finds the resource of a call, checks its input and builds the whole backend request. */

import { setImmediate as turn } from 'node:timers/promises';
import type { NextFunction, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { protocolOf } from '../../events/event.ts';
import { type EventSink, openJournal } from '../../events/journal.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { advanceCall, callAt, type ResolvedCall } from '../call.ts';

/**
 * An unknown resource and one that is not exposed on this channel get the same answer, so that one
 * channel does not show what another one sells.
 */
export function resolve(catalogue: Pick<Catalogue, 'byId'>, events: EventSink): RequestHandler {
  return function resolveMiddleware(_req, res, next) {
    const call = callAt(res, 'received');
    const resource = catalogue.byId.get(call.resourceId);
    if (resource === undefined || !resource.exposedVia.includes(call.channel))
      throw new GatewayError('RESOURCE_NOT_FOUND');
    const { requestId, callId, channel } = call;
    const journal = openJournal({ requestId, callId, resourceId: resource.id, adapter: protocolOf(channel) }, events);
    journal.record('resource.requested');
    advanceCall(res, { ...call, stage: 'resolved', resource, journal });
    next();
  };
}

/**
 * Whether a server may take the path of a request, as it was built for a resource, for the path of
 * an operation that is sold on other terms.
 */
type LeadsElsewhere = (resourceId: string, path: string) => boolean;

const ELSEWHERE = {
  ok: false,
  problems: [{ path: '$', keyword: 'path', message: 'makes the path of another operation, which is sold by itself' }],
} as const;

/**
 * Nothing about the input can fail after the payment. A request without any input that asks for the
 * price is left to `challenge` as it is.
 */
export function validate(leadsElsewhere: LeadsElsewhere = () => false): RequestHandler {
  const prepare = ({ resource, input, rawInput }: ResolvedCall): ReturnType<ResolvedCall['resource']['prepare']> => {
    // The backend gets the input that is priced: raw bytes may have digits that no double has.
    const isPriced = resource.pricing.type !== 'free' && resource.pricing.by !== undefined;
    const prepared = resource.prepare(input, isPriced ? undefined : rawInput);
    return prepared.ok && leadsElsewhere(resource.id, prepared.request.path) ? ELSEWHERE : prepared;
  };
  const check = (call: ResolvedCall, res: Response, next: NextFunction): void => {
    const prepared = prepare(call);
    if (prepared.ok) {
      const { input, request } = prepared;
      const callerHeaders = call.inPlace?.callerHeaders;
      const whole = callerHeaders === undefined ? request : { ...request, callerHeaders };
      advanceCall(res, { ...call, stage: 'prepared', input, request: whole });
    } else if (!asksForPrice(call)) {
      throw new GatewayError('INPUT_INVALID', {
        message: 'The input does not fit the input schema of this resource.',
        details: { errors: prepared.problems },
      });
    }
    next();
  };
  return function validateMiddleware(_req, res, next) {
    const call = callAt(res, 'resolved');
    // A wrong input may need a second validator, whose compilation has a turn of its own.
    if (call.resource.compile()) return turn().then(() => check(call, res, next));
    check(call, res, next);
    return undefined;
  };
}

/** Catalogues of paid services ask like this, and take 400 for "not found" (x402 2.2). */
function asksForPrice({ withoutInput = false, proof, resource }: ResolvedCall): boolean {
  return withoutInput && proof.kind === 'none' && resource.pricing.type !== 'free';
}
