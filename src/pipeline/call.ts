import type { Response } from 'express';
import { type BackendAnswer, BackendError, type BackendRequest, type HeldConnection } from '../backend/exchange.ts';
import { ERRORS, type GatewayError } from '../errors.ts';
import type { Channel } from '../events/event.ts';
import type { Journal } from '../events/journal.ts';
import type { JsonObject } from '../json/types.ts';
import { reasonOfRefusal } from '../mandates/ap2/model/reasons.ts';
import type { AcceptedMandate, RefusedMandate } from '../mandates/ap2/model/verdict.ts';
import type { CarriedMandate } from '../mandates/ap2/token/envelope.ts';
import type { PaymentRecord } from '../payments/ledger/ledger.ts';
import type { ShownToken } from '../payments/pricing/buyer-token.ts';
import type { Lease } from '../payments/settlement/reservations.ts';
import type { ClaimEnd } from '../payments/settlement/task-claims.ts';
import type { CarriedProof } from '../payments/settlement/verifier.ts';
import type { Challenge } from '../payments/x402/wire/challenge.ts';
import type { Agreed } from '../payments/x402/wire/offers.ts';
import type { PaymentResponse, Proof } from '../payments/x402/wire/types.ts';
import type { ReceiptAuthorization } from '../receipts/receipt.ts';
import type { Resource } from '../resources/resource.ts';
import { accessRecordOf, noteOutcome, noteReason, type Outcome } from '../server/http/access-record.ts';

/** What only one payment may buy: it belongs to the first whose proof was verified. */
export interface Exclusive {
  /**
   * Claims it for the payment of this call. @throws GatewayError when another one has it,
   * StoreError
   */
  claim(): Promise<void>;
  /** What came of the claim. Never rejects. */
  end(how: ClaimEnd): Promise<void>;
}

/**
 * What an adapter read from its protocol's message. Everything the middleware needs, in no
 * protocol's words.
 */
export interface ReceivedCall {
  readonly stage: 'received';
  readonly requestId: string;
  /** The gateway's own name for this call (call-id.ts). */
  readonly callId: string;
  readonly channel: Channel;
  readonly resourceId: string;
  readonly input: JsonObject;
  /** The bytes of the input, when the protocol sent them as a body of their own. */
  readonly rawInput: Uint8Array | undefined;
  readonly proof: CarriedProof;
  /** Looked at only where the resource requires one. */
  readonly mandate: CarriedMandate;
  /**
   * The caller's `Idempotency-Key`, unchecked; `illegible` when it was repeated. Only paid calls
   * look at it.
   */
  readonly idempotencyKey: string | undefined | { readonly kind: 'illegible' };
  /** What only one payment may buy, whichever comes first; absent: nothing of the kind. */
  readonly exclusive?: Exclusive;
  readonly trace: { readonly traceparent: string | undefined; readonly tracestate: string | undefined };
  readonly responseWriter: ResponseWriter;
  /** Milliseconds of the monotonic clock; when the caller had shown his proof, at the earliest. */
  readonly startedAt: number;
  /** Aborted when the caller leaves. Only free calls listen to it: a paid one runs to its end. */
  readonly left: AbortSignal;
}

/** The resource exists and is exposed on this channel. */
export interface ResolvedCall extends Omit<ReceivedCall, 'stage'> {
  readonly stage: 'resolved';
  readonly resource: Resource;
  readonly journal: Journal;
}

/**
 * The input is valid and the whole backend request is built: nothing but money and the merchant can
 * fail now.
 */
export interface PreparedCall extends Omit<ResolvedCall, 'stage' | 'resource'> {
  readonly stage: 'prepared';
  readonly resource: SoldResource;
  readonly request: BackendRequest;
  /** Absent for a call that is served by the configuration of today. */
  readonly collecting?: Collecting;
}

/** What of a resource counts once the request is built. */
type SoldResource = Pick<Resource, 'id' | 'name' | 'pricing' | 'authorization' | 'backend'>;

/**
 * A call whose resource was removed, or takes its input no more, and that may have been paid
 * before. It never begins a payment and is never asked for one: what its record does not answer is
 * refused as if nobody had looked.
 */
export interface Collecting {
  /** The terms it was paid on. */
  readonly agreed: Agreed;
  /** The call as it was refused, and what for. */
  readonly before: ReceivedCall | ResolvedCall;
  readonly otherwise: GatewayError;
}

/** The proof passed every local check. No money has moved. */
export interface ProvenCall extends Omit<PreparedCall, 'stage' | 'idempotencyKey'> {
  readonly stage: 'proven';
  readonly payment: Proof;
  /** The one name the caller gave this payment, in whichever way (contract 4.4). */
  readonly idempotencyKey: string | undefined;
  /**
   * The token of a 402 that came back with the proof: a secret between buyer and gateway (contract
   * 4.5).
   */
  readonly token: ShownToken | undefined;
  /**
   * What the local checks have against it although it belongs to a record; undefined for a proof
   * that is right.
   */
  readonly refusal: string | undefined;
  /** Absent where no mandate is required, and before it was looked at. */
  readonly mandated?: Mandated;
  /** What a failure has to say about money that moved, or may have moved. */
  readonly said?: PaymentAnnotations;
}

/**
 * A call whose resource requires a mandate, past the check of it. `unneeded`: its payment was
 * admitted before, under the mandate that came then (ap2 11); `refused` still keeps anything new
 * from being settled.
 */
export type Mandated =
  | { readonly kind: 'accepted'; readonly mandate: AcceptedMandate }
  | { readonly kind: 'unneeded'; readonly refused: RefusedMandate };

/** The call may reach the merchant: it is free, or its payment is settled. */
export interface FundedCall extends Omit<PreparedCall, 'stage'> {
  readonly stage: 'funded';
  readonly funding: Funding;
  /** The mandate that it is made under; absent where none is required. */
  readonly authorization?: UsedMandate;
}

/** A mandate that this call uses up. */
export interface UsedMandate {
  /** What the gateway's own receipt says of it. */
  readonly summary: ReceiptAuthorization;
  /**
   * A signed JWT for the caller (ap2 13); undefined unless this call presents the mandate that
   * admitted its payment.
   */
  readonly receipt: string | undefined;
  /**
   * Of a free call: what became of it, told once. The claim of a paid one shares the fate of its
   * payment. Never rejects.
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
      /**
       * The connection that was opened before the money moved, and is used once; undefined where it
       * moved earlier.
       */
      readonly held: HeldConnection | undefined;
      readonly response: PaymentResponse;
    };

/** The merchant answered with something that is delivered. */
export interface AnsweredCall extends Omit<FundedCall, 'stage'> {
  readonly stage: 'answered';
  readonly answer: BackendAnswer;
  /**
   * An earlier attempt got this answer and could not hand it over; the merchant was not called now.
   */
  readonly keptBefore: boolean;
}

export type Call = ReceivedCall | ResolvedCall | PreparedCall | ProvenCall | FundedCall | AnsweredCall;
export type Stage = Call['stage'];
type CallAt<S extends Stage> = Extract<Call, { readonly stage: S }>;

/**
 * How the relay of an answer ended. `broken`: the merchant's answer broke off after its head was
 * sent.
 */
export type Relayed =
  | { readonly kind: 'finished' }
  | { readonly kind: 'client_gone' }
  /**
   * There is no memory to hold the answer as a whole; what was not read of it is still to be read.
   */
  | { readonly kind: 'busy' }
  | { readonly kind: 'broken'; readonly error: BackendError };

/** What is said beside an outcome: of the buyer's money, and of his mandate. */
export interface PaymentAnnotations {
  readonly payment?: PaymentResponse;
  /** A signed JWT (ap2 13). */
  readonly mandateReceipt?: string;
}

/** What a relay is told beside the answer. */
export interface RelayOptions extends PaymentAnnotations {
  /** It was delivered before. */
  readonly replayed?: boolean;
  /**
   * To be called once, when the first byte is there; it leaves when this resolves. Never rejects.
   */
  readonly sending?: () => Promise<void>;
}

/**
 * Writes outcomes in the words of one protocol. Each call sees exactly one of these verbs, or
 * `failed` after a broken relay.
 */
export interface ResponseWriter {
  /** Largest answer of the merchant that this protocol can carry, bytes. */
  readonly maxAnswerBytes: number;
  paymentRequired(challenge: Challenge, payment?: PaymentResponse): void;
  failed(error: GatewayError, context: PaymentAnnotations & { readonly resourceId?: string }): void;
  /** Streams the merchant's answer on. Always reads the answer to its end. */
  relay(answer: BackendAnswer, said: RelayOptions): Promise<Relayed>;
}

/**
 * A call begins. Whatever its response writer is asked to say is noted as what became of the
 * request.
 */
export function receiveCall(res: Response, call: ReceivedCall): void {
  advanceCall(res, { ...call, responseWriter: noting(res, call.responseWriter) });
}

function noting(res: Response, responseWriter: ResponseWriter): ResponseWriter {
  return {
    maxAnswerBytes: responseWriter.maxAnswerBytes,
    paymentRequired(challenge, payment) {
      noteOutcome(res, 'payment_required');
      responseWriter.paymentRequired(challenge, payment);
    },
    failed(error, context) {
      noteOutcome(res, error.code);
      const reason = reasonOfRefusal(error.code, error.details?.reason);
      if (reason !== undefined) noteReason(res, reason);
      responseWriter.failed(error, context);
    },
    relay(answer, said) {
      noteOutcome(res, said.replayed === true ? 'replayed' : 'delivered', answer.body);
      return responseWriter.relay(answer, said);
    },
  };
}

/** The call in this response's hands, if an adapter put one there. */
export function currentCall(res: Response): Call | undefined {
  return (res.locals as { call?: Call }).call;
}

/** Puts the call, with what a middleware learned, where the next middleware finds it. */
export function advanceCall(res: Response, call: Call): void {
  (res.locals as { call?: Call }).call = call;
}

/**
 * The call, narrowed to the stages a middleware serves. Anything else is a mistake in the order of
 * the middleware.
 */
export function callAt<S extends Stage>(res: Response, ...stages: readonly S[]): CallAt<S> {
  const call = currentCall(res);
  if (call === undefined || !stages.includes(call.stage as S))
    throw new Error(`layer order: expected a call at ${stages.join(' or ')}, found ${call?.stage ?? 'none'}`);
  return call as CallAt<S>;
}

/** What became of a request that is over. Undefined: it was no call, and nothing was refused. */
export function outcomeOf(res: Pick<Response, 'locals' | 'writableFinished'>): Outcome | undefined {
  const account = accessRecordOf(res);
  if (account === undefined || res.writableFinished) return account?.outcome;
  const { outcome, relaying, channel } = account;
  if (relaying === undefined) return outcome ?? (channel === undefined ? undefined : 'client_gone');
  // A relay that did not get to its end: either side may have broken it off.
  const { errored } = relaying;
  const byCaller = errored === null || (errored instanceof BackendError && errored.reason === 'aborted');
  return byCaller ? 'client_gone' : 'BACKEND_ERROR';
}

/** Whether somebody on this side of the caller failed. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome in ERRORS && ERRORS[outcome as keyof typeof ERRORS].status >= 500;
}

/**
 * The id of a resource that exists and is exposed on the caller's channel; what a caller merely
 * names is not. Of a checkout: its operation.
 */
export function resourceIn(res: Response): string | undefined {
  const call = currentCall(res);
  if (call === undefined) return accessRecordOf(res)?.operation;
  return call.stage === 'received' ? undefined : call.resource.id;
}

/**
 * What every answer to a call that may reach the merchant says of its payment and of its mandate.
 */
export function annotationsOfFunded({
  funding,
  authorization,
}: Pick<FundedCall, 'funding' | 'authorization'>): PaymentAnnotations {
  return {
    ...(funding.kind === 'paid' ? { payment: funding.response } : {}),
    ...(authorization?.receipt === undefined ? {} : { mandateReceipt: authorization.receipt }),
  };
}
