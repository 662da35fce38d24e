import type { IncomingMessage, ServerResponse } from 'node:http';
import { ADAPTER_WITH_ROUTES, type IdPrefixes, requestIdFor } from '../http/request-id.ts';
import { rawPath } from '../http/target.ts';
import { answerBusy } from './busy-answer.ts';
import type { Shedding, ShedReason } from './shedding.ts';

/** Answers a request that is not let in. False: it may come in. */
export type LoadShedder = (req: IncomingMessage, res: ServerResponse) => boolean;

/** What a load shedder is made of. */
interface LoadShedderParts {
  readonly shedding: Shedding;
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  readonly onShed: (reason: ShedReason) => void;
}

/**
 * Stands before Express. Only calls are shed, and every call is a POST: probes, operators and whoever looks up what is sold ask with
 * GET. A refused call has cost the reading of its head and the writing of its answer; neither its body nor its resource was looked at.
 * The adapter with routes of its own is asked later: it tells first who may not call at all, and says everything in its own words.
 */
export function createLoadShedder({ shedding, mounts, draining, onShed }: LoadShedderParts): LoadShedder {
  return function door(req, res) {
    if (req.method !== 'POST') return false;
    const channel = mounts.get(rawPath(req.url ?? ''));
    if (channel === ADAPTER_WITH_ROUTES) return false;
    const reason = shedding();
    if (reason === undefined) return false;
    // Too many calls are no reason not to read one more: the middleware behind the adapter says it in the words of its protocol.
    if (reason === 'in_flight' && channel !== undefined) return false;
    onShed(reason);
    answerBusy(req, res, requestIdFor(req, channel ?? 'req'), draining());
    return true;
  };
}
