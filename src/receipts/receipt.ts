import type { Channel } from '../events/event.ts';

/** The money part of a receipt. `amount` in display units; `externalReference` is the transaction hash, empty when unconfirmed. */
export interface ReceiptPayment {
  readonly status: 'settled';
  readonly provider: 'x402';
  readonly amount: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly payee: string;
  readonly externalReference: string;
  readonly replayKey: string;
  /** ISO 8601. */
  readonly settledAt: string;
}

/** The mandate part of a receipt: which mandate, and nothing that stands in it (ap2.md 12). */
export interface ReceiptAuthorization {
  readonly method: 'ap2';
  readonly reference: string;
  readonly metadata: {
    readonly mandateIssuer?: string;
    readonly checkoutIssuer?: string;
    readonly checkoutId?: string;
  };
}

/** A receipt (CONTRACT 6.1): every delivered call, and every settled call whether delivered or not. Only these fields. */
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
    /** The window to collect is over and nothing was delivered: the merchant owes the money back. */
    readonly refundDue?: true;
    /** Paid by the facilitator's word alone, without a transaction (state-and-reliability 3.5, R5). */
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
}

export interface ReceiptPage {
  readonly receipts: readonly Receipt[];
  readonly nextCursor?: string;
}

export const RECEIPT_ID = /^receipt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The book of receipts. Receipts of payments are written by the payment's own transition, not through `write`. */
export interface ReceiptBook {
  /** Writes all or none; a receipt whose id is there already is replaced. */
  write(receipts: readonly Receipt[]): Promise<void>;
  page(query: ReceiptQuery): Promise<ReceiptPage>;
}
