/** Receipts (contract 6.1), their ids, the lists that they stand on, and the port of their book. */

import type { Channel, Protocol } from '../events/event.ts';
import { newId } from '../events/event.ts';
import { isoTime } from '../time/time.ts';

/**
 * The money part of a receipt. `amount` in display units; `externalReference` is the transaction
 * hash, empty where an operator decided without one. `unknown`: nothing can tell whether it was
 * paid; an operator decides.
 */
export interface ReceiptPayment {
  readonly status: 'settled' | 'unknown';
  readonly provider: 'x402';
  readonly amount: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly payee: string;
  readonly externalReference: string;
  readonly replayKey: string;
  /** ISO 8601. If the status is `unknown`: when the search for the outcome ended. */
  readonly settledAt: string;
}

/** The money that goes back to the payer of a call that was not delivered. */
interface ReceiptRefund {
  /** `refunding`: an operator sends it. `refunded`: the chain shows that it arrived. */
  readonly status: 'refunding' | 'refunded';
  /** `refunding` has the hash signed last, `refunded` that of the transfer. */
  readonly transaction: string;
  /** ISO 8601, when this was written. */
  readonly at: string;
}

/** The mandate part of a receipt: which mandate, and nothing of its content (ap2 12). */
export interface ReceiptAuthorization {
  readonly method: 'ap2';
  readonly reference: string;
  readonly metadata: {
    readonly mandateIssuer?: string;
    readonly checkoutIssuer?: string;
    readonly checkoutId?: string;
  };
}

/** SHA-256 hex of what was asked and of what was delivered, for statements to the buyer. */
export interface ReceiptDigests {
  /** Of the RFC 8785 form of the input. */
  readonly input: string;
  /** Of the bytes of the merchant's answer. */
  readonly answer: string;
  /** Length of the answer. */
  readonly bytes: number;
}

/**
 * A receipt: every delivered call has one, and every settled call whether delivered or not. It has
 * only these fields.
 */
export interface Receipt {
  /** `receipt_` + UUIDv7, so ids sort by time. */
  readonly id: string;
  readonly requestId: string;
  readonly resourceId: string;
  readonly protocol: Protocol;
  /** ISO 8601, when written. */
  readonly at: string;
  readonly delivered: boolean;
  readonly deliveredAt?: string;
  /** 0 when no answer came. */
  readonly backendStatus: number;
  /** The whole call, milliseconds. */
  readonly durationMs: number;
  /** Of a delivered paid call, where `signing` is configured. */
  readonly digests?: ReceiptDigests;
  readonly payment?: ReceiptPayment;
  readonly refund?: ReceiptRefund;
  readonly authorization?: ReceiptAuthorization;
  readonly metadata?: {
    /** Why the last attempt to deliver failed: `backend_status_500`, `timeout`, `client_gone`. */
    readonly backendErrorCode?: string;
    /** The path template of the backend that failed. */
    readonly backendPath?: string;
    readonly resumedFrom?: string;
    readonly operation?: string;
    /** The call came to the backend's own address (contract 7.4). */
    readonly channel?: 'origin';
    /** The backend's answer is kept: the buyer collects it with the same proof. */
    readonly answerKept?: true;
    /** The time to collect is over and nothing was delivered: the merchant owes the money back. */
    readonly refundDue?: true;
    /** The gateway's own name of the call that wrote this (`newCallId`). */
    readonly callId?: string;
    /** Bytes of the answer left, perhaps with its end: it may have arrived. */
    readonly deliveryUncertain?: true;
    /** Most bytes of the body of an uncertain answer that left, as far as that is known. */
    readonly sentBytes?: number;
    /** Length of the body of an uncertain answer, bytes; absent where that is not known. */
    readonly ofBytes?: number;
    /** The store had lost the receipt, which was made again from what the chain shows. */
    readonly recovered?: 'chain';
  };
}

export const RECEIPT_ID = /^receipt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * A receipt id: its time alone fixes its position in the book.
 * @param random 16 bytes; given where the same receipt must get the same id again
 */
export function receiptId(nowMs: number = Date.now(), random?: Uint8Array): string {
  return newId('receipt_', nowMs, random);
}

/** Sorts before every receipt id of this moment or later, and after all earlier ones. */
export function receiptIdsBefore(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `receipt_${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** `metadata.channel`: absent where the protocol says it already. */
export function channelOf(channel: Channel): Pick<NonNullable<Receipt['metadata']>, 'channel'> {
  return channel === 'origin' ? { channel } : {};
}

/** The facts of a call that its receipt states. */
type CallFacts = Pick<Receipt, 'requestId' | 'resourceId' | 'protocol' | 'backendStatus' | 'durationMs'> &
  Partial<Pick<Receipt, 'authorization' | 'metadata'>>;

/** The receipt of a call that has just been delivered and for which the gateway took no money. */
export function unpaidReceipt({ requestId, resourceId, protocol, ...facts }: CallFacts): Receipt {
  const now = isoTime();
  return { id: receiptId(), requestId, resourceId, protocol, at: now, delivered: true, deliveredAt: now, ...facts };
}

/**
 * `done`: delivered; these are trimmed. `owed`: paid and not delivered, refunds that are due among
 * them; never trimmed. `uncertain`: those of the owed ones of which it is not known whether they
 * were paid, or whether they arrived.
 */
export type ReceiptList = 'done' | 'owed' | 'uncertain';

/** The lists a receipt stands on. It changes them in the write that changes the receipt. */
export function listsOf(receipt: Receipt): readonly ReceiptList[] {
  if (receipt.delivered) return ['done'];
  return uncertaintyOf(receipt) === undefined ? ['owed'] : ['owed', 'uncertain'];
}

/** The open question of a receipt: whether the money moved, or whether the answer arrived. */
export function uncertaintyOf({ delivered, payment, metadata }: Receipt): 'payment' | 'delivery' | undefined {
  if (delivered) return undefined;
  if (payment?.status === 'unknown') return 'payment';
  return metadata?.deliveryUncertain === true ? 'delivery' : undefined;
}

/** The requests of a receipt: a buyer of a resumed delivery may only have the id that paid. */
export function requestsOf({ requestId, metadata }: Receipt): readonly string[] {
  return metadata?.resumedFrom === undefined ? [requestId] : [requestId, metadata.resumedFrom];
}

/** Newest first. `cursor` is a receipt id: only older receipts are returned. */
export interface ReceiptQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly requestId?: string;
  readonly resourceId?: string;
  readonly delivered?: boolean;
  readonly callId?: string;
  /** The replay key of a payment: it has one receipt. */
  readonly payment?: string;
  /** Only those of which it is not known whether the money moved, or whether the answer arrived. */
  readonly uncertain?: 'payment' | 'delivery';
}

export interface ReceiptPage {
  readonly receipts: readonly Receipt[];
  readonly nextCursor?: string;
}

/** Delivered receipts that this process dropped, by the bound that they were over. */
export interface TrimmedReceipts {
  readonly length: number;
  readonly age: number;
}

/**
 * The book of receipts. Receipts of payments are written by the payment's own transition, not
 * through `write`. Over its bounds it drops the oldest *delivered* ones: what is owed to a buyer
 * stays until it is delivered. A payment has one receipt: a new one replaces it, also under another
 * id.
 */
export interface ReceiptBook {
  /** Writes all or none; a receipt whose id is there already is replaced. */
  write(receipts: readonly Receipt[]): Promise<void>;
  /**
   * Writes the receipts whose id and payment are not in the book: a rebuilt receipt replaces none
   * of the gateway's own. Resolves to the ids that are new.
   */
  add(receipts: readonly Receipt[]): Promise<readonly string[]>;
  /** All filters but `resourceId` are answered from an index. */
  page(query: ReceiptQuery): Promise<ReceiptPage>;
  /** Receipts on each list. */
  counts(): Promise<Readonly<Record<ReceiptList, number>>>;
  trimmed(): TrimmedReceipts;
  /** The oldest and the newest id that were ever dropped: a receipt between them may be lost. */
  trimmedRange(): Promise<{ readonly from: string; readonly to: string } | undefined>;
}
