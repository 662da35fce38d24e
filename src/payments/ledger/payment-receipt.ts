/** The receipt of a payment, made from its record with each write of settlement and delivery. */

import { protocolOf } from '../../events/event.ts';
import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import {
  channelOf,
  type Receipt,
  type ReceiptAuthorization,
  type ReceiptDigests,
  type ReceiptPayment,
  receiptId,
} from '../../receipts/receipt.ts';
import type { PaymentRecord, PaymentTerms } from './ledger.ts';

/** The largest moment that an id can hold, milliseconds. */
const LATEST_MS = 2 ** 48 - 1;

/**
 * The id of a payment's receipt. It follows from the authorization alone, so the paid call, a later
 * call after a loss of the store and a search through the chain all write the same receipt. Ids
 * still sort by time: clients let an authorization live as long as the offer asks, so it was signed
 * that long before its end.
 * @param payId replay key, SHA-256 hex
 * @param validBefore of the authorization, Unix seconds
 * @param lifeSeconds `maxTimeoutSeconds` of the offer
 */
export function paymentReceiptId(payId: string, validBefore: number, lifeSeconds: number): string {
  const signedMs = Math.max(0, validBefore - lifeSeconds) * 1_000;
  return receiptId(Math.min(signedMs, LATEST_MS), Buffer.from(payId, 'hex').subarray(0, 16));
}

/** `reason` of an undelivered record: no byte reached the backend, any method may be sent again. */
export const REQUEST_NOT_WRITTEN = 'request_not_written';
/** `reason` from the moment when the request may leave: bytes may have reached the backend. */
export const REQUEST_MAY_BE_WRITTEN = 'request_may_be_written';
/** The backend answered and the answer is kept: nothing needs to be sent again. */
export const ANSWER_KEPT = 'answer_kept';

/** Why nothing was delivered: the fault, and the path template of the backend where it failed. */
export interface DeliveryFailure {
  readonly code: string;
  readonly path?: string;
}

/** How the delivery of a paid call ended. */
export interface Delivery {
  readonly backendStatus: number;
  readonly deliveredAt: Date | undefined;
  readonly failure: DeliveryFailure | undefined;
  /** The backend's answer waits for its buyer. */
  readonly answerKept?: boolean;
  /** Digests of the input and of the delivered answer, for statements. */
  readonly digests?: ReceiptDigests | undefined;
}

/** The part of an answer that the connection has taken: at least as much as left. */
export interface Sent {
  /** False: certainly nothing left, not even the head. */
  readonly begun: boolean;
  /** Of the body. */
  readonly bytes: number;
  /** Length of the body; 0: not known. */
  readonly of: number;
}

/** The terms of a record that its receipt states. */
type SettledTerms = PaymentTerms &
  Pick<PaymentRecord, 'transaction' | 'evidence' | 'recovered' | 'sending' | 'sentBytes' | 'ofBytes'>;

/** The receipt of a settled payment: the same id from settlement to the last delivery attempt. */
export function receiptOf(
  terms: SettledTerms,
  facts: {
    readonly settledAt: Date;
    readonly at: Date;
    readonly durationMs: number;
    readonly delivery: Delivery | undefined;
    /** The later request that collected the answer of an earlier, paid one. */
    readonly resumedBy?: string;
    /** The call that is being answered; the one that paid unless it is given. */
    readonly callId?: string | undefined;
    /** The buyer can collect no more: the merchant owes the money back. */
    readonly refundDue?: boolean;
    readonly refund?: Receipt['refund'];
    /** Nothing shows whether it was paid; `settledAt`: when the last question was asked. */
    readonly unknown?: boolean;
  },
): Receipt {
  const { delivery, resumedBy, refundDue, refund, callId = terms.callId } = facts;
  const metadata = {
    ...(callId === undefined ? {} : { callId }),
    ...channelOf(terms.channel),
    ...(terms.recovered === undefined ? {} : { recovered: terms.recovered }),
    ...(isUncertain(terms, delivery) && refund?.status !== 'refunded' ? uncertainDelivery(terms) : {}),
    ...(refundDue === true ? { refundDue: true as const } : {}),
    ...(delivery?.failure === undefined ? {} : { backendErrorCode: delivery.failure.code }),
    ...(delivery?.failure?.path ? { backendPath: delivery.failure.path } : {}),
    ...(delivery?.answerKept === true ? { answerKept: true as const } : {}),
    ...(resumedBy === undefined ? {} : { resumedFrom: terms.requestId }),
  };
  return {
    id: terms.receiptId,
    requestId: resumedBy ?? terms.requestId,
    resourceId: terms.resourceId,
    protocol: protocolOf(terms.channel),
    at: facts.at.toISOString(),
    delivered: delivery?.deliveredAt !== undefined,
    ...(delivery?.deliveredAt === undefined ? {} : { deliveredAt: delivery.deliveredAt.toISOString() }),
    backendStatus: delivery?.backendStatus ?? 0,
    durationMs: facts.durationMs,
    ...(delivery?.digests === undefined ? {} : { digests: delivery.digests }),
    payment: paymentOf(terms, facts.settledAt, facts.unknown === true ? 'unknown' : 'settled'),
    ...(refund === undefined ? {} : { refund }),
    ...authorizationOf(terms),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

/** Whether bytes may have left, and no delivery has completed since. */
function isUncertain({ sending }: Pick<SettledTerms, 'sending'>, delivery: Delivery | undefined): boolean {
  return sending === 'begun' && delivery?.deliveredAt === undefined;
}

function uncertainDelivery({ sentBytes, ofBytes = 0 }: SettledTerms) {
  return {
    deliveryUncertain: true as const,
    ...(sentBytes === undefined ? {} : { sentBytes, ...(ofBytes === 0 ? {} : { ofBytes }) }),
  };
}

/**
 * The receipt about an attempt that died while its answer left; absent without such a death, and
 * where a receipt states it already. The attempt that takes over writes it with its first write.
 */
export function uncertainReceipt(record: PaymentRecord): { readonly receipt?: Receipt } {
  const isStated = record.sentBytes !== undefined;
  if (record.sending !== 'begun' || isStated || record.settledAt === undefined) return {};
  const delivery = {
    backendStatus: 0,
    deliveredAt: undefined,
    failure: undefined,
    answerKept: record.reason === ANSWER_KEPT,
  };
  return {
    receipt: receiptOf(record, { settledAt: new Date(record.settledAt), at: new Date(), durationMs: 0, delivery }),
  };
}

/** The mandate that the payment was admitted with. */
export function authorizationOf({ mandate }: Pick<PaymentTerms, 'mandate'>): {
  readonly authorization?: ReceiptAuthorization;
} {
  const stored = mandate === undefined ? undefined : readStoredMandate(mandate);
  if (stored === undefined) return {};
  const { reference, mandateIssuer, checkoutIssuer, checkoutId } = stored;
  return { authorization: { method: 'ap2', reference, metadata: { mandateIssuer, checkoutIssuer, checkoutId } } };
}

function paymentOf(terms: SettledTerms, settledAt: Date, status: ReceiptPayment['status']): ReceiptPayment {
  return {
    status,
    provider: 'x402',
    amount: terms.amount,
    currency: terms.currency,
    network: terms.network,
    asset: terms.asset,
    payer: terms.payer,
    payee: terms.payee,
    externalReference: terms.transaction ?? '',
    replayKey: terms.payId,
    settledAt: settledAt.toISOString(),
  };
}
