/** Finds the resource of a call and opens the call's journal, after the call got its slot. */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { protocolOf } from '../../events/event.ts';
import { type EventSink, openJournal } from '../../events/journal.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { advanceCall, callAt } from '../call.ts';

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
