/**
 * Lets a call that today's configuration refuses collect what it paid for under an earlier one
 * (contract 4.3, row "undelivered"). `resolve` and `validate` use it before they refuse, `settle`
 * where the operation of the purchase has another method by now.
 */

import type { NextFunction, Response } from 'express';
import { type BackendRequest, NONE_RELAYED } from '../../backend/exchange.ts';
import type { GatewayError } from '../../errors.ts';
import { type Channel, protocolOf } from '../../events/event.ts';
import { type EventSink, openJournal } from '../../events/journal.ts';
import type { FindEarlier } from '../../payments/settlement/earlier-purchase.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import { withoutReserved } from '../../resources/prepare.ts';
import type { Resource } from '../../resources/resource.ts';
import {
  advanceCall,
  type Collecting,
  type PreparedCall,
  type ProvenCall,
  type ReceivedCall,
  type ResolvedCall,
} from '../call.ts';
import { throwStorageError } from './storage-error.ts';

/**
 * The collecting call that a refused call becomes.
 * @param otherwise the refusal, where the call has nothing to collect
 * @throws GatewayError `otherwise`; STORAGE_ERROR when the store does not answer, because a buyer
 * must not learn that a paid purchase is unknown
 */
export type FindCollectable = (
  call: ReceivedCall | ResolvedCall | ProvenCall,
  otherwise: GatewayError,
) => Promise<PreparedCall>;

/** How the backend is called for a resource that was removed, together with its own headers. */
export type RemovedBackend = Pick<Resource['backend'], 'timeoutMs' | 'maxResponseBytes' | 'headers'>;

/** How the backend is called for what was bought of a removed or changed resource. */
export function backendOfRemoved(method: BackendRequest['method'], removed: RemovedBackend): Resource['backend'] {
  return { ...removed, method, path: '', idempotent: false, relayStatuses: NONE_RELAYED };
}

/** For a gateway where nothing can be paid: nothing can be collected either. */
export const collectsNothing: FindCollectable = async (_call, otherwise) => {
  throw otherwise;
};

/** Goes on with the call that was found, or rejects with its refusal. */
export async function collected(res: Response, next: NextFunction, found: Promise<PreparedCall>): Promise<void> {
  advanceCall(res, await found);
  next();
}

export function createCollect(
  find: FindEarlier,
  catalogue: Pick<Catalogue, 'byId'>,
  events: EventSink,
  removed: RemovedBackend,
): FindCollectable {
  return async function collect(call, otherwise) {
    if (call.proof.kind === 'none') throw otherwise;
    const { resourceId, channel, requestId, callId, proof } = call;
    const input = withoutReserved(call.input);
    const idempotencyKey = typeof call.idempotencyKey === 'string' ? call.idempotencyKey : undefined;
    const callerHeaders = call.inPlace?.callerHeaders ?? {};
    const unpaid = call.stage === 'proven';
    const asked = { resourceId, input, callerHeaders, proof, idempotencyKey, unpaid };
    const found = await find(asked).catch(throwStorageError);
    // One channel does not show what another one sold; the backend's own address is HTTP, and is
    // gone with the resource.
    if (found === undefined || (call.stage === 'received' && !sameProtocol(found.record.channel, channel)))
      throw otherwise;
    const { record, request, agreed } = found;
    const now = catalogue.byId.get(resourceId);
    const backend =
      now?.backend.method === request.method ? now.backend : backendOfRemoved(request.method, now?.backend ?? removed);
    const pricing = {
      type: 'fixed',
      amount: record.amount,
      currency: record.currency,
      units: BigInt(record.units),
    } as const;
    const journal =
      call.stage !== 'received'
        ? call.journal
        : openJournal({ requestId, callId, resourceId, adapter: protocolOf(channel) }, events);
    if (call.stage === 'received') journal.record('resource.requested');
    return {
      ...call,
      stage: 'prepared',
      // Its mandate gated the payment that was made.
      resource: { id: resourceId, name: now?.name ?? resourceId, pricing, authorization: [], backend },
      journal,
      input,
      request: { ...request, headers: { ...backend.headers, ...request.headers } },
      collecting: { agreed, before: call, otherwise },
    };
  };
}

function sameProtocol(one: Channel, other: Channel): boolean {
  return protocolOf(one) === protocolOf(other);
}

/** The refusal of a call that has nothing to collect; the call is again what it was before. */
export function notCollected(res: Response, { before, otherwise }: Collecting): GatewayError {
  advanceCall(res, before);
  return otherwise;
}
