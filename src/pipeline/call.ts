/**
 * The call that passes through the middleware, stage by stage, from the adapter that received it to
 * the answer. The functions below the types read and advance a call, and tell its outcome.
 */

import type { Response } from 'express';
import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  type Cancellation,
  type HeldConnection,
  Undeliverable,
} from '../backend/backend-exchange.ts';
import { ERRORS, type GatewayError } from '../errors.ts';
import type { Channel } from '../events/event.ts';
import type { Journal } from '../events/journal.ts';
import type { JsonObject } from '../json/json.ts';
import type { CarriedMandate } from '../mandates/ap2/envelope.ts';
import { type MandateVerdict, reasonOfRefusal } from '../mandates/ap2/reasons.ts';
import type { PaymentRecord } from '../payments/ledger/ledger.ts';
import type { Sent } from '../payments/ledger/payment-receipt.ts';
import type { ReadToken } from '../payments/pricing/buyer-token.ts';
import type { Lease } from '../payments/settlement/attempt.ts';
import type { NoRecord } from '../payments/settlement/safe-to-rechallenge.ts';
import type { CarriedProof } from '../payments/settlement/verifier.ts';
import type { Challenge } from '../payments/x402/wire/challenge.ts';
import type { Agreed, Offer } from '../payments/x402/wire/offers.ts';
import type { PaymentResponse, Proof } from '../payments/x402/wire/types.ts';
import type { ReceiptAuthorization } from '../receipts/receipt.ts';
import type { Resource } from '../resources/resource.ts';
import { accessRecordOf, note, noteOutcome, notePayment, type Outcome } from '../server/http/access-record.ts';

/** A call as an adapter read it, without the words of any protocol. */
export interface ReceivedCall {
  readonly stage: 'received';
  readonly requestId: string;
  /** The gateway's own name for this call (`newCallId`). */
  readonly callId: string;
  readonly channel: Channel;
  readonly resourceId: string;
  readonly input: JsonObject;
  /** The bytes of the input, when the protocol sent them as a body of their own. */
  readonly rawInput: Uint8Array | undefined;
  /** The request had no body, and no other place of it held a part of the input. */
  readonly withoutInput?: boolean;
  readonly proof: CarriedProof;
  /** Only a resource that requires a mandate looks at it. */
  readonly mandate: CarriedMandate;
  /** The `Idempotency-Key`, unchecked; `illegible`: repeated. Only paid calls look at it. */
  readonly idempotencyKey: string | undefined | { readonly kind: 'illegible' };
  /** Only of a call to the backend's own address. */
  readonly inPlace?: InPlaceCall;
  readonly trace: { readonly traceparent: string | undefined; readonly tracestate: string | undefined };
  readonly responseWriter: ResponseWriter;
  /** Milliseconds of the monotonic clock, not before the proof was read. */
  readonly startedAt: number;
  /** Aborted when the caller leaves. Only free calls listen to it: a paid one runs to its end. */
  readonly left: Cancellation;
}

/** A call to the backend's own address: its parts beside the input. Header names in lower case. */
export interface InPlaceCall {
  /** The URL that a challenge names; undefined: the invoke URL. */
  readonly url: string | undefined;
  /** The headers that `backend.originHeaders` names: part of the purchase, and never logged. */
  readonly callerHeaders: Readonly<Record<string, string>>;
  /** Preconditions and ranges; none where the answer is paid for, because it is always whole. */
  readonly conditions: Readonly<Record<string, string>>;
}

/** The resource exists and is exposed on this channel. */
export interface ResolvedCall extends Omit<ReceivedCall, 'stage'> {
  readonly stage: 'resolved';
  readonly resource: Resource;
  readonly journal: Journal;
}

/** The input is valid and the backend request is built: only money and the backend can fail now. */
export interface PreparedCall extends Omit<ResolvedCall, 'stage' | 'resource'> {
  readonly stage: 'prepared';
  /** The parts of the resource that count once the request is built. */
  readonly resource: Pick<Resource, 'id' | 'name' | 'pricing' | 'authorization' | 'backend'>;
  readonly request: BackendRequest;
}

/** A refused call whose proof has a record, as it was before it began to collect. */
export interface Collecting {
  readonly before: ReceivedCall | ResolvedCall | PreparedCall | ProvenCall;
  /** Answers the call with its refusal, or throws the refusal. */
  readonly refuse: (answer: NoRecord) => void;
}

/** The proof passed every local check. No money has moved. */
export interface ProvenCall extends Omit<PreparedCall, 'stage' | 'idempotencyKey'> {
  readonly stage: 'proven';
  readonly payment: Proof;
  /** The offer that the proof accepts. It is paid, recorded and compared with a mandate. */
  readonly agreed: Agreed;
  /**
   * The present offer for its input; absent where a known payment is collected, and where its token
   * showed the price.
   */
  readonly offer?: Offer;
  /** The one name that the caller gave this payment, in whichever way (contract 4.4). */
  readonly idempotencyKey: string | undefined;
  /** The token of the 402 that came back with the proof: the buyer's secret (contract 4.5). */
  readonly token: ReadToken | undefined;
  /** The reason against a new settlement, where a record or the chain has to answer. */
  readonly refusal: string | undefined;
  /** Absent for a call that is not refused. */
  readonly collecting?: Collecting;
  /**
   * Absent where no mandate is required, and before its check. A known payment was admitted under
   * an earlier mandate, so a refusal of this one does not stop it (ap2 11).
   */
  readonly mandated?: MandateVerdict;
  /** The statement of a failure about money that moved, or may have moved. */
  readonly annotations?: PaymentAnnotations;
}

/** The call may reach the backend: it is free, or its payment is settled. */
export interface FundedCall extends Omit<PreparedCall, 'stage'> {
  readonly stage: 'funded';
  readonly funding: Funding;
  /** The mandate of the call; absent where none is required. */
  readonly authorization?: UsedMandate;
}

/** A mandate that this call uses up. */
export interface UsedMandate {
  /** Its part of the gateway's own receipt. */
  readonly summary: ReceiptAuthorization;
  /**
   * A signed JWT for the caller (ap2 13), if this call presents the mandate that admitted its
   * payment.
   */
  readonly receipt: string | undefined;
  /**
   * Ends the use of a free call, once. The use of a paid call ends with its payment. Never rejects.
   */
  readonly finish?: (how: 'commit' | 'release') => Promise<void>;
}

export type Funding =
  | { readonly kind: 'free' }
  | {
      readonly kind: 'paid';
      /** In state `settled` or `undelivered`, leased to this call. */
      readonly record: PaymentRecord;
      /** Ends with the delivery. */
      readonly lease: Lease;
      /** Opened before the money moved, for one use; undefined where money moved earlier. */
      readonly held: HeldConnection | undefined;
      readonly response: PaymentResponse;
    };

/** The backend's answer is there and can be delivered. */
export interface AnsweredCall extends Omit<FundedCall, 'stage'> {
  readonly stage: 'answered';
  readonly answer: BackendAnswer;
  /** An earlier attempt got this answer and could not deliver it; the backend was not asked now. */
  readonly keptBefore: boolean;
}

export type Call = ReceivedCall | ResolvedCall | PreparedCall | ProvenCall | FundedCall | AnsweredCall;
export type Stage = Call['stage'];
type CallAt<S extends Stage> = Extract<Call, { readonly stage: S }>;

/**
 * Writes outcomes in the words of one protocol. A call uses at most one of these methods, or
 * `failed` after an unfinished `relay`.
 */
export interface ResponseWriter {
  /** Largest answer of the backend that this protocol can carry, bytes. */
  readonly maxAnswerBytes: number;
  paymentRequired(challenge: Challenge, payment?: PaymentResponse): void;
  failed(error: GatewayError, context: PaymentAnnotations & { readonly resourceId?: string }): void;
  /** Sends the backend's answer on. Reads it to its end, except for a HEAD or the result `busy`. */
  relay(answer: BackendAnswer, options: RelayOptions): Promise<Relayed>;
}

/** The statements of an answer beside its outcome: about the payment, and about the mandate. */
export interface PaymentAnnotations {
  readonly payment?: PaymentResponse;
  /** A signed JWT (ap2 13). */
  readonly mandateReceipt?: string;
}

/** The parts that a relay gets beside the answer. */
export interface RelayOptions extends PaymentAnnotations {
  /** The answer was delivered before. */
  readonly replayed?: boolean;
  /**
   * Signs the delivery: a compact JWS for the buyer. Call it at most once, when the answer has been
   * read to its end.
   */
  readonly statement?: () => string | undefined;
  /** Called once, when the first byte is there; true: it may leave. Never rejects. */
  readonly sending?: () => Promise<boolean>;
}

/**
 * How the relay of an answer ended. `busy`: no memory to hold the answer as a whole; its rest is
 * still unread. `broken`: the backend's answer broke off after the backend sent its head. `sent`:
 * the part of a paid answer that left.
 */
export type Relayed =
  | { readonly kind: 'finished' }
  | { readonly kind: 'client_gone'; readonly sent?: Sent }
  | { readonly kind: 'busy' }
  | { readonly kind: 'broken'; readonly error: BackendError; readonly sent?: Sent };

/** Begins a call. Each output of its response writer is noted as the outcome of the request. */
export function receiveCall(res: Response, call: ReceivedCall): void {
  advanceCall(res, { ...call, responseWriter: noting(res, call.responseWriter) });
}

function noting(res: Response, responseWriter: ResponseWriter): ResponseWriter {
  return {
    maxAnswerBytes: responseWriter.maxAnswerBytes,
    paymentRequired(challenge, payment) {
      noteOutcome(res, 'payment_required');
      notePayment(res, payment?.transaction, challenge.refusal?.reason);
      responseWriter.paymentRequired(challenge, payment);
    },
    failed(error, context) {
      noteOutcome(res, error.code);
      notePayment(res, context.payment?.transaction);
      const reason = reasonOfRefusal(error.code, error.details?.reason);
      if (reason !== undefined) note(res, 'reason', reason);
      if (error.cause instanceof Undeliverable) note(res, 'backend', error.cause);
      responseWriter.failed(error, context);
    },
    relay(answer, options) {
      noteOutcome(res, options.replayed === true ? 'replayed' : 'delivered', answer);
      notePayment(res, options.payment?.transaction);
      return responseWriter.relay(answer, options);
    },
  };
}

/** The call that this response answers; undefined where no adapter received one. */
export function currentCall(res: Response): Call | undefined {
  return (res.locals as { call?: Call }).call;
}

/** Stores the call, with what a middleware learned, for the next middleware. */
export function advanceCall(res: Response, call: Call): void {
  (res.locals as { call?: Call }).call = call;
}

/**
 * The call, narrowed to the stages that a middleware serves.
 * @throws Error at any other stage: the middleware stand in the wrong order
 */
export function callAt<S extends Stage>(res: Response, ...stages: readonly S[]): CallAt<S> {
  const call = currentCall(res);
  if (call === undefined || !stages.includes(call.stage as S))
    throw new Error(`order of middleware: expected a call at ${stages.join(' or ')}, found ${call?.stage ?? 'none'}`);
  return call as CallAt<S>;
}

/** The statements of each answer to a funded call about its payment and its mandate. */
export function annotationsOfFunded({
  funding,
  authorization,
}: Pick<FundedCall, 'funding' | 'authorization'>): PaymentAnnotations {
  return {
    ...(funding.kind === 'paid' ? { payment: funding.response } : {}),
    ...(authorization?.receipt === undefined ? {} : { mandateReceipt: authorization.receipt }),
  };
}

/** The outcome of a request that is over; undefined: no call, and nothing was refused. */
export function outcomeOf(res: Pick<Response, 'locals' | 'writableFinished'>): Outcome | undefined {
  const access = accessRecordOf(res);
  if (access === undefined || res.writableFinished) return access?.outcome;
  const { outcome, relaying, channel } = access;
  if (relaying === undefined) return outcome ?? (channel === undefined ? undefined : 'client_gone');
  // A relay that did not get to its end: either side may have broken it off.
  const { errored } = relaying.body;
  const byCaller = errored === null || (errored instanceof BackendError && errored.reason === 'aborted');
  return byCaller ? 'client_gone' : 'BACKEND_ERROR';
}

/** Whether the fault lies with the gateway or the backend, not with the caller. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome in ERRORS && ERRORS[outcome as keyof typeof ERRORS].status >= 500;
}

/**
 * The id of the called resource, if it exists and is exposed on the caller's channel; never a name
 * that a caller made up. For a checkout: its operation.
 */
export function resourceIn(res: Response): string | undefined {
  const call = currentCall(res);
  if (call === undefined) return accessRecordOf(res)?.operation;
  return call.stage === 'received' ? undefined : call.resource.id;
}
