/**
 * The facts of a request: its ids, and the record of its outcome, for log line, metrics and trace.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { ErrorCode } from '../../errors.ts';
import type { Channel } from '../../events/event.ts';
import { newCallId, newId } from '../../events/event.ts';
import { belowMount, rawPath, readHeader } from './request.ts';

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
 * The outcome of a request, from closed lists: `delivered`, `replayed` (delivered before),
 * `payment_required`, `client_gone` (the caller left first), an error code of contract 1.2, the
 * code of an ACP error, or the code of a JSON-RPC error.
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
  /** The outcome of the answer that began; absent before, and for successes that are no call's. */
  outcome: Outcome | undefined;
  /** Why a mandate was refused, from the closed list of ap2 8; absent for other outcomes. */
  reason: string | undefined;
  /** Why the backend did not deliver, and which operation; absent for other calls. */
  backend: BackendFault | undefined;
  /** The transaction that settled the stated payment, or may have; absent without one. */
  transaction: string | undefined;
  /** Why a payment was refused (contract 1.3); absent for other answers. */
  refusal: string | undefined;
  /** Fields of the merchant that the head of the answer had no room for. */
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

/** The part of a backend's answer that shows whether the answer broke off. */
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

/**
 * Calls `ended` once the response is closed, and at once where it is closed already: a client that
 * left while its request was read has no `close` event to come.
 */
export function onceClosed(res: ServerResponse, ended: () => void): void {
  if (res.closed || res.destroyed) ended();
  else res.once('close', ended);
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

/** Notes one fact of the request that this response answers. */
export function note<Fact extends keyof AccessRecord>(res: Response, fact: Fact, value: AccessRecord[Fact]): void {
  const record = accessRecordOf(res);
  if (record !== undefined) record[fact] = value;
}

/** Notes what the answer states about its payment: an empty transaction is none. */
export function notePayment(res: Response, transaction: string | undefined, refusal?: string): void {
  const record = accessRecordOf(res);
  if (record === undefined) return;
  record.transaction = transaction || undefined;
  record.refusal = refusal;
}

/** The form of a caller's X-Request-Id (specification 8). */
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/;

/** How a new id begins, by raw path (contract 3, "requestId minted by other channels"). */
export interface IdPrefixes {
  get(path: string): string | undefined;
}

/** The adapter that answers everything at and below its mount; the others have one path each. */
export const ADAPTER_WITH_ROUTES = 'acp';

/** The channel's name on the mounts of its adapter, `req` everywhere else. */
export function idPrefixes(
  protocols: Readonly<Record<string, { readonly enabled: boolean; readonly mountPath?: string }>>,
): IdPrefixes {
  const prefixes = new Map<string, string>();
  for (const [channel, { enabled, mountPath }] of Object.entries(protocols))
    if (enabled && mountPath !== undefined) prefixes.set(mountPath, channel).set(`${mountPath}/`, channel);
  const { [ADAPTER_WITH_ROUTES]: adapter } = protocols;
  const above = adapter?.enabled === true ? adapter.mountPath : undefined;
  if (above === undefined) return prefixes;
  return {
    get: (path) => (belowMount(above, path) === undefined ? prefixes.get(path) : ADAPTER_WITH_ROUTES),
  };
}

/** The caller's id if it came once and is legal, else a new one: no other text is ever echoed. */
export function requestIdFor(req: IncomingMessage, prefix: string): string {
  const given = readHeader(req, 'x-request-id');
  return given.kind === 'single' && REQUEST_ID.test(given.value) ? given.value : newRequestId(prefix);
}

/**
 * A UUIDv7: stores keep an index of request ids, and ids that grow with time touch its last page
 * alone.
 */
function newRequestId(prefix: string): string {
  return newId(`${prefix}_`);
}

/** Gives every request its ids before anything can fail; every answer names its request id. */
export function identify(prefixes: IdPrefixes = new Map<string, string>()): RequestHandler {
  return function identify(req, res, next) {
    const requestId = requestIdFor(req, prefixes.get(rawPath(req.url)) ?? 'req');
    // Replaces the object of Express: V8 reads an object without a prototype as a dictionary.
    res.locals = { requestId, callId: newCallId() } satisfies CallIds;
    res.setHeader('x-request-id', requestId);
    next();
  };
}

/** The id that the caller chose or was given, and the gateway's own. */
export interface CallIds {
  readonly requestId: string;
  readonly callId: string;
}

/** Both ids of the request that this response answers. */
export function idsOf(res: Response): CallIds {
  return { requestId: requestIdOf(res), callId: callIdOf(res) };
}

/** The id of the request that this response answers. */
export function requestIdOf(res: Response): string {
  return given(res).requestId ?? newRequestId('req');
}

/** The gateway's own id of the call that this response answers; callers never see it. */
export function callIdOf(res: Response): string {
  return given(res).callId ?? newCallId();
}

function given(res: Response): Partial<CallIds> {
  return (res.locals ?? {}) as Partial<CallIds>;
}
