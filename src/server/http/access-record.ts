import type { Readable } from 'node:stream';
import type { Request, RequestHandler, Response } from 'express';
import type { ErrorCode } from '../../errors.ts';
import type { Channel } from '../../events/event.ts';

/**
 * The codes of ACP's Error document that the gateway answers (acp 13.4). A bug is an INTERNAL_ERROR
 * on every channel.
 */
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
 * What became of a request, in words from closed lists: `delivered`, `replayed` (delivered before),
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

/**
 * What is known of a request for those who tell of it when it is over. Written by whoever learns
 * it.
 */
export interface AccessRecord {
  /** When it came in, milliseconds of the monotonic clock. */
  readonly openedAt: number;
  /** The adapter that it was sent to. */
  channel: Channel | undefined;
  /** The operation of a checkout, once its caller is known: such a call has no resource. */
  operation: string | undefined;
  /**
   * What the gateway set out to answer. Absent while nothing is said, and for answers that are no
   * call's.
   */
  outcome: Outcome | undefined;
  /**
   * Why a mandate was refused, one of the closed list of reasons (ap2 8). Absent for every other
   * outcome.
   */
  reason: string | undefined;
  /** The merchant's answer, once it is on its way out: whether it got there is known at the end. */
  relaying: Readable | undefined;
  /**
   * The clock of the middleware that has the call, and since when, milliseconds of the monotonic
   * clock.
   */
  layer: LayerClock | undefined;
  layerSince: number;
}

/** Takes the time that calls spent in one layer, milliseconds. */
interface LayerClock {
  took(ms: number): void;
}

/**
 * Opens the account of each request. `closed` hears of it once its answer is out or its caller
 * gone.
 */
export function keepAccessRecord(watch: { opened(): void; closed(req: Request, res: Response): void }): RequestHandler {
  return function keepAccountLayer(req, res, next) {
    const account: AccessRecord = {
      openedAt: performance.now(),
      channel: undefined,
      operation: undefined,
      outcome: undefined,
      reason: undefined,
      relaying: undefined,
      layer: undefined,
      layerSince: 0,
    };
    (res.locals as { account?: AccessRecord }).account = account;
    watch.opened();
    res.once('close', () => watch.closed(req, res));
    next();
  };
}

/**
 * The account of the request that this response answers; only the listener for agents keeps any.
 */
export function accessRecordOf(res: { readonly locals?: object }): AccessRecord | undefined {
  return (res.locals as { account?: AccessRecord } | undefined)?.account;
}

/**
 * Notes what is being answered. The last word counts: an answer of the merchant that breaks off
 * becomes a failure.
 */
export function noteOutcome(res: Response, outcome: Outcome, relaying?: Readable): void {
  const account = accessRecordOf(res);
  if (account === undefined) return;
  account.outcome = outcome;
  account.relaying = relaying;
}

/** Notes why a mandate was refused; the refusal itself is the outcome. */
export function noteReason(res: Response, reason: string): void {
  const account = accessRecordOf(res);
  if (account !== undefined) account.reason = reason;
}

/** Notes that a request belongs to this channel, whatever comes of it. */
export function noteChannel(res: Response, channel: Channel): void {
  const account = accessRecordOf(res);
  if (account !== undefined) account.channel = channel;
}

/** Notes which operation of a checkout was asked for by somebody who may. */
export function noteOperation(res: Response, operation: string): void {
  const account = accessRecordOf(res);
  if (account !== undefined) account.operation = operation;
}

/**
 * The handlers of an adapter: whatever comes of a request there belongs to this channel, also what
 * the first of them refuses.
 */
export function ofChannel(channel: Channel, handlers: readonly RequestHandler[]): readonly RequestHandler[] {
  const [first, ...others] = handlers;
  if (first === undefined) return [];
  return [
    function ofChannelLayer(req, res, next) {
      noteChannel(res, channel);
      return first(req, res, next);
    },
    ...others,
  ];
}
