import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { type EventSink, openJournal } from '../../events/journal.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { advanceCall, callAt } from '../call.ts';
import { collectsNothing, type FindCollectable } from '../steps/collecting.ts';

/**
 * Finds the resource. An unknown one and one that is not exposed on this channel get the same
 * answer, so that a channel cannot be used to learn what another one sells. What was bought of it
 * before it was removed can still be collected.
 */
export function resolve(
  catalogue: Catalogue,
  feed: EventSink,
  collect: FindCollectable = collectsNothing,
): RequestHandler {
  return async function resolveLayer(_req, res, next) {
    const call = callAt(res, 'received');
    const resource = catalogue.byId.get(call.resourceId);
    if (resource === undefined || !resource.exposedVia.includes(call.channel)) {
      advanceCall(res, await collect(call, new GatewayError('RESOURCE_NOT_FOUND')));
      next();
      return;
    }
    const { requestId, callId, channel } = call;
    const journal = openJournal({ requestId, callId, resourceId: resource.id, adapter: channel }, feed);
    journal.record('resource.requested');
    advanceCall(res, { ...call, stage: 'resolved', resource, journal });
    next();
  };
}
