/** The access record: what a request became, kept for the log line, the metrics and the trace. */

import type { Request, RequestHandler, Response } from 'express';
import type { ErrorCode } from '../../errors.ts';
import type { Channel } from '../../events/event.ts';
import { onceClosed } from './once-closed.ts';

/** The codes of ACP's Error document that the gateway sends (acp 13.4); a bug is INTERNAL_ERROR. */
type CheckoutCode =
  | 'not_found'
  | 'method_not_allowed'
  | 'unauthorized'
  | 'forbidden'
  | 'missing_api_version'
  | 'unsupported_api_version'
  | 'idempotency_key_required'
  | 'idempotency_key_invalid'
  | 'unsupported_media_type'
  | 'request_body_too_large'
  | 'invalid_request'
  | 'invalid_json'
  | 'invalid_request_body'
  | 'rate_limited'
  | 'idempotency_in_flight'
  | 'idempotency_conflict'
  | 'checkout_session_not_found'
  | 'checkout_session_not_cancelable'
  | 'checkout_session_conflict'
  | 'requires_3ds'
  | 'processing_error'
  | 'service_unavailable';

/**
 * What became of a request, from closed lists: `delivered`, `replayed` (delivered before),
 * `payment_required`, `client_gone` (the caller left first), an error code of contract 1.2, that of
 * an ACP error, or the code of a JSON-RPC error.
 */
export type Outcome =
  | 'delivered'
  | 'replayed'
  | 'payment_required'
  | 'client_gone'
  | ErrorCode
  | CheckoutCode
  | `${number}`;

export interface AccessRecord {
  /** When it came in, milliseconds of the monotonic clock. */
  readonly openedAt: number;
  /** The adapter that it was sent to. */
  channel: Channel | undefined;
  /** Whether it passes to the backend without being sold. */
  passed: true | undefined;
  /** The operation of a checkout call, which has no resource; noted once its caller is known. */
  operation: string | undefined;
  /** What the gateway began to answer. Absent before that, and for answers that are no call's. */
  outcome: Outcome | undefined;
  /** Why a mandate was refused, from the closed list of ap2 8; absent for other outcomes. */
  reason: string | undefined;
  /** Why the backend did not deliver, and which operation; absent for other calls. */
  backend: BackendFault | undefined;
  /** What settled the payment that the answer states, or may have; absent without one. */
  transaction: string | undefined;
  /** Why a payment was refused (contract 1.3); absent for other answers. */
  refusal: string | undefined;
  /** Fields of the merchant that its head had no room for. */
  leftOut: string | undefined;
  /** The backend's answer, once it is relayed: whether it arrives is known at the end. */
  relaying: RelayedAnswer | undefined;
  /** The clock of the timed step that has the call, and since when, milliseconds as above. */
  step: StepClock | undefined;
  stepSince: number;
}

interface BackendFault {
  readonly code: string;
  readonly operation: string;
}

/** A backend's answer, of which it is asked whether it broke off. */
interface RelayedAnswer {
  readonly body: { readonly errored: Error | null };
}

/** Takes the time that calls spend in one timed step, milliseconds. */
interface StepClock {
  took(ms: number): void;
}

/** Opens the record of each request. `closed`: its answer is out, or its caller is gone. */
export function keepAccessRecord(watch: { opened(): void; closed(req: Request, res: Response): void }): RequestHandler {
  return function keepAccessRecord(req, res, next) {
    const accessRecord: AccessRecord = {
      openedAt: performance.now(),
      channel: undefined,
      passed: undefined,
      operation: undefined,
      outcome: undefined,
      reason: undefined,
      backend: undefined,
      transaction: undefined,
      refusal: undefined,
      leftOut: undefined,
      relaying: undefined,
      step: undefined,
      stepSince: 0,
    };
    (res.locals as { accessRecord?: AccessRecord }).accessRecord = accessRecord;
    watch.opened();
    onceClosed(res, () => watch.closed(req, res));
    next();
  };
}

/** The record of the request that this response answers; only the agents' listener keeps any. */
export function accessRecordOf(res: { readonly locals?: object }): AccessRecord | undefined {
  return (res.locals as { accessRecord?: AccessRecord } | undefined)?.accessRecord;
}

/** Notes what is answered. The last note counts: a relayed answer that breaks off is a failure. */
export function noteOutcome(res: Response, outcome: Outcome, relaying?: RelayedAnswer): void {
  const record = accessRecordOf(res);
  if (record === undefined) return;
  record.outcome = outcome;
  record.relaying = relaying;
}

/** Notes why a mandate was refused; the refusal itself is the outcome. */
export function noteReason(res: Response, reason: string): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.reason = reason;
}

/** Notes why the backend did not deliver. */
export function noteBackend(res: Response, fault: BackendFault): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.backend = fault;
}

/** Notes what the answer states about its payment: an empty transaction is none. */
export function notePayment(res: Response, transaction: string | undefined, refusal?: string): void {
  const record = accessRecordOf(res);
  if (record === undefined) return;
  record.transaction = transaction || undefined;
  record.refusal = refusal;
}

/** Notes which fields of the merchant do not reach the caller. */
export function noteLeftOut(res: Response, names: readonly string[]): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.leftOut = names.join(' ');
}

/** Notes that a request belongs to this channel. */
export function noteChannel(res: Response, channel: Channel): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.channel = channel;
}

/** Notes that a request passes to the backend without being sold. */
export function notePassed(res: Response): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.passed = true;
}

/** Notes the operation of a checkout call whose caller is known. */
export function noteOperation(res: Response, operation: string): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record.operation = operation;
}

/** The handlers of an adapter, after a note of its channel, which refused requests have as well. */
export function ofChannel(channel: Channel, handlers: readonly RequestHandler[]): readonly RequestHandler[] {
  const [first, ...others] = handlers;
  if (first === undefined) return [];
  return [
    function noteChannelFirst(req, res, next) {
      noteChannel(res, channel);
      return first(req, res, next);
    },
    ...others,
  ];
}
