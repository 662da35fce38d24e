import type { IncomingMessage, ServerResponse } from 'node:http';
import { type IdPrefixes, requestIdFor } from '../http/request-id.ts';
import { answerBusy } from './busy-answer.ts';
import type { Shedding, ShedReason } from './shedding.ts';

/** Answers a request that is not let in. False: it may come in. */
export type Door = (req: IncomingMessage, res: ServerResponse) => boolean;

/** What the door is made of. */
export interface DoorParts {
  readonly shedding: Shedding;
  /** The mounts of the fronts whose proofs lie in the body, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  readonly onShed: (reason: ShedReason) => void;
}

/** Where a front expects a proof before the body (reference x402.md). */
const PROOF_HEADER = 'payment-signature';
/** No message that holds a PaymentPayload is shorter: signature and addresses alone are that long in hexadecimal, bytes. */
export const SHORTEST_PAID_MESSAGE_BYTES = 512;

function pathOf(url: string): string {
  const at = url.indexOf('?');
  return at === -1 ? url : url.slice(0, at);
}

/**
 * Stands before Express. Only calls are shed, and every call is a POST: probes, operators and whoever looks up what is sold ask with
 * GET. A refused call has cost the reading of its head and the writing of its answer; neither its body nor its resource was looked at.
 */
export function createDoor({ shedding, mounts, draining, onShed }: DoorParts): Door {
  const mayPay = ({ headers }: IncomingMessage, isMessage: boolean): boolean => {
    if (headers[PROOF_HEADER] !== undefined) return true;
    if (!isMessage) return false;
    const length = headers['content-length'];
    return length === undefined || Number(length) >= SHORTEST_PAID_MESSAGE_BYTES;
  };
  return function door(req, res) {
    if (req.method !== 'POST') return false;
    const channel = mounts.get(pathOf(req.url ?? ''));
    const reason = shedding(mayPay(req, channel !== undefined));
    if (reason === undefined) return false;
    // Too many calls are no reason not to read one more: the layer behind the front says it in the words of its protocol.
    if (reason === 'in_flight' && channel !== undefined) return false;
    onShed(reason);
    answerBusy(req, res, requestIdFor(req, channel ?? 'req'), draining());
    return true;
  };
}
