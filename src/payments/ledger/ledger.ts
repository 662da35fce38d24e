import type { Channel, EventDraft } from '../../events/event.ts';
import type { Receipt } from '../../receipts/receipt.ts';

/** CONTRACT 4.3. `settling` with an expired lease is *uncertain*: derived from the lease, never stored. */
export type PaymentState = 'reserved' | 'settling' | 'settled' | 'delivered' | 'undelivered' | 'refused' | 'refundDue';

/** What is fixed at the first reservation of an authorization. Amounts: `units` in base units, `amount` in display units. */
export interface PaymentTerms {
  /** Replay key: SHA-256 hex over `x402|chainId|asset|from|nonce`, all lower case. */
  readonly payId: string;
  /** SHA-256 hex of (resource id, backend method, RFC 8785 form of the input): what was bought. */
  readonly bind: string;
  readonly requestId: string;
  readonly resourceId: string;
  readonly channel: Channel;
  readonly receiptId: string;
  readonly payer: string;
  readonly payee: string;
  readonly asset: string;
  readonly network: string;
  readonly units: string;
  readonly amount: string;
  readonly currency: string;
  readonly nonce: string;
  /** Unix seconds. */
  readonly validBefore: number;
  /** The decoded PaymentPayload and the built backend request as JSON, so that the call can be finished without the buyer. */
  readonly proof: string;
  readonly backendRequest: string;
}

/** One payment. Times in milliseconds of the store's clock. */
export interface PaymentRecord extends PaymentTerms {
  readonly state: PaymentState;
  /** Random token of the attempt that may write. */
  readonly owner: string;
  /** Grows with every take-over; a paused owner's writes are refused. */
  readonly fence: number;
  /** 0 when nobody works on it. */
  readonly leaseUntil: number;
  /** Token of the last applied command: the same command again changes nothing. */
  readonly step: string;
  /** Deliveries that failed or died; `advance` in table.ts says what counts. */
  readonly tries: number;
  readonly reservedAt: number;
  readonly changedAt: number;
  readonly settledAt?: number;
  readonly transaction?: string;
  /** Signed transaction written ahead of its broadcast (local rail). */
  readonly rawTransaction?: string;
  /** Why it was refused. */
  readonly reason?: string;
}

export interface Reserve {
  readonly terms: PaymentTerms;
  readonly owner: string;
  readonly leaseMs: number;
}

/**
 * `run`: the caller owns the record now (new, its own again, or taken over after the lease ended) and finds its state in it.
 * `busy`: somebody else works on it. `used`: the authorization bought something else. `ended`: nothing is left to do.
 */
export type Reservation =
  | { readonly kind: 'run'; readonly record: PaymentRecord }
  | { readonly kind: 'busy'; readonly record: PaymentRecord; readonly leaseLeftMs: number }
  | { readonly kind: 'used'; readonly record: PaymentRecord }
  | { readonly kind: 'ended'; readonly record: PaymentRecord };

/** Who writes, and under which token. */
export interface Holder {
  readonly payId: string;
  readonly owner: string;
  readonly fence: number;
  /** Unique for each command; a retried command carries the same. */
  readonly step: string;
}

/** A change of state with everything that must become true with it. */
export interface Advance extends Holder {
  readonly to: PaymentState;
  /** New lease from now, 0 to 600,000 milliseconds; 0 gives the lease up. Ignored in final states. */
  readonly leaseMs: number;
  readonly facts?: PaymentFacts;
  readonly receipt?: Receipt;
  readonly events: readonly EventDraft[];
}

/** Facts learned while a record stays in its state (write-ahead of a transaction), or with a change of state. */
export interface PaymentFacts {
  readonly transaction?: string;
  readonly rawTransaction?: string;
  readonly reason?: string;
}

/** `fenced`: another owner took over. `illegal`: the table has no such transition. `lost`: the record is gone. */
export type Advanced =
  | { readonly kind: 'done'; readonly record: PaymentRecord }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'illegal'; readonly state: PaymentState }
  | { readonly kind: 'lost' };

/** `gone`: the record is deleted, or was so before. */
export type Discarded = Exclude<Advanced, { kind: 'done' | 'lost' }> | { readonly kind: 'gone' };

/** The payment ledger: the pure table of `table.ts`, made durable. Every method is one atomic write of the store. */
export interface PaymentLedger {
  reserve(command: Reserve): Promise<Reservation>;
  advance(command: Advance): Promise<Advanced>;
  /** Records facts without a change of state and renews the lease. */
  note(holder: Holder, facts: PaymentFacts, leaseMs: number): Promise<Advanced>;
  /** Deletes a record that is still `reserved`: nothing was sent, the proof may be used again. Events ride along. */
  discard(holder: Holder, events: readonly EventDraft[]): Promise<Discarded>;
  /** Gives up the lease without a change of state, so that the next attempt need not wait for it. */
  release(holder: Holder): Promise<Advanced>;
  read(payId: string): Promise<PaymentRecord | undefined>;
}
