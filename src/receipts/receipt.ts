import { uuidv7 } from '../events/call-id.ts';
import type { Channel } from '../events/event.ts';
import type { ReceiptList } from './lists.ts';

/**
 * A receipt id: `receipt_` + UUIDv7, so that ids sort by time and a receipt's id alone is its place
 * in the book.
 * @param random 16 bytes; given where the same receipt must get the same id again
 */
export function receiptId(nowMs: number = Date.now(), random?: Uint8Array): string {
  return `receipt_${uuidv7(nowMs, random)}`;
}

/** What stands before every receipt id of this moment or later, and behind every earlier one. */
export function receiptIdsBefore(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `receipt_${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/**
 * The money part of a receipt. `amount` in display units; `externalReference` is the transaction
 * hash, empty when unconfirmed. `unknown`: nothing can tell whether it was paid; an operator
 * decides.
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
  /** ISO 8601. Of an `unknown` one: when nobody was left to ask. */
  readonly settledAt: string;
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

/**
 * A receipt (contract 6.1): every delivered call, and every settled call whether delivered or not.
 * Only these fields.
 */
export interface Receipt {
  /** `receipt_` + UUIDv7, so ids sort by time. */
  readonly id: string;
  readonly requestId: string;
  readonly resourceId: string;
  readonly protocol: Channel;
  /** ISO 8601, when written. */
  readonly at: string;
  readonly delivered: boolean;
  readonly deliveredAt?: string;
  /** 0 when no answer came. */
  readonly backendStatus: number;
  /** The whole call, milliseconds. */
  readonly durationMs: number;
  readonly payment?: ReceiptPayment;
  readonly authorization?: ReceiptAuthorization;
  readonly metadata?: {
    readonly backendErrorCode?: string;
    readonly resumedFrom?: string;
    readonly operation?: string;
    /** The merchant's answer is kept: the buyer collects it with the same proof. */
    readonly answerKept?: true;
    /**
     * The window to collect is over and nothing was delivered: the merchant owes the money back.
     */
    readonly refundDue?: true;
    /**
     * The gateway's own name for the call that wrote this; a caller chooses `requestId`, and others
     * may choose the same.
     */
    readonly callId?: string;
    /**
     * The process died before it wrote how the delivery ended, and bytes of the answer may have
     * reached the buyer.
     */
    readonly deliveryUncertain?: true;
    /** Paid by the facilitator's word alone, without a transaction (x402 4.2). */
    readonly unconfirmed?: true;
    /** The store had lost it; made again from what the chain shows. */
    readonly recovered?: 'chain';
  };
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
  /**
   * Only those of which it is not known whether the money moved (`payment`) or the answer arrived
   * (`delivery`).
   */
  readonly uncertain?: 'payment' | 'delivery';
}

export interface ReceiptPage {
  readonly receipts: readonly Receipt[];
  readonly nextCursor?: string;
}

export const RECEIPT_ID = /^receipt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Delivered receipts that this process dropped so far: those over the number the book may hold, and
 * those past their age.
 */
export interface TrimmedReceipts {
  readonly length: number;
  readonly age: number;
}

/**
 * The book of receipts. Receipts of payments are written by the payment's own transition, not
 * through `write`. Over its bounds it drops the oldest *delivered* ones: what is owed to a buyer
 * stays until it is delivered. A payment has one receipt: whatever is written of it replaces what
 * stood there, also under another id.
 */
export interface ReceiptBook {
  /** Writes all or none; a receipt whose id is there already is replaced. */
  write(receipts: readonly Receipt[]): Promise<void>;
  /**
   * Writes those of which neither id nor payment is there yet: what is known better is never
   * replaced. Answers the ids that are new.
   */
  add(receipts: readonly Receipt[]): Promise<readonly string[]>;
  /**
   * `delivered`, `uncertain`, `requestId`, `callId` and `payment` are answered from an index,
   * whatever lies around.
   */
  page(query: ReceiptQuery): Promise<ReceiptPage>;
  /** Receipts on each list. */
  counts(): Promise<Readonly<Record<ReceiptList, number>>>;
  trimmed(): TrimmedReceipts;
  /**
   * The oldest and the newest id that were ever dropped for the bounds: what lies between and is
   * not in the book may have been there.
   */
  trimmedRange(): Promise<{ readonly from: string; readonly to: string } | undefined>;
}

/** What a receipt says of its call. */
type CallFacts = Pick<Receipt, 'requestId' | 'resourceId' | 'protocol' | 'backendStatus' | 'durationMs'> &
  Partial<Pick<Receipt, 'authorization' | 'metadata'>>;

/** The receipt of a call that has just been delivered and that cost nothing here. */
export function unpaidReceipt({ requestId, resourceId, protocol, ...facts }: CallFacts): Receipt {
  const now = new Date().toISOString();
  return { id: receiptId(), requestId, resourceId, protocol, at: now, delivered: true, deliveredAt: now, ...facts };
}
