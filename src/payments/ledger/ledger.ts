/**
 * The port of the payment ledger: its records and its commands. table.ts defines their meaning, the
 * stores implement the port.
 */

import type { Channel, EventDraft } from '../../events/event.ts';
import type { UseRefusal } from '../../mandates/register.ts';
import type { Receipt } from '../../receipts/receipt.ts';

/** The states of contract 4.3. `settling` with an ended lease is *uncertain*, never stored so. */
export type PaymentState =
  | 'reserved'
  /**
   * Of a payment that is settled after its call: the backend's answer is there and is kept, and
   * nothing was sent. Its buyer gets it when the money has moved, and not before.
   */
  | 'worked'
  | 'settling'
  /**
   * A settlement was begun and each node that was asked to send it refused: nothing is under way,
   * and no reconciler sends it. The record keeps the hash, because a node may hold the transaction
   * all the same; only the chain, past `validBefore`, makes it `refused`.
   */
  | 'withdrawn'
  | 'settled'
  | 'delivered'
  | 'undelivered'
  | 'refused'
  | 'refundDue'
  /**
   * An operator sends the money back. The chain decides whether that happened: it takes the refund
   * of a payment once.
   */
  | 'refunding'
  | 'refunded'
  | 'unresolved';

/** Facts that the first reservation of an authorization fixes; `units`: base, `amount`: display. */
export interface PaymentTerms {
  /** Replay key: SHA-256 hex over `x402|chainId|asset|from|nonce`, all lower case. */
  readonly payId: string;
  /** SHA-256 hex over the purchase: resource id, method, canonical input, caller's headers. */
  readonly bind: string;
  readonly requestId: string;
  /** The call that reserved it (`newCallId`). */
  readonly callId: string;
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
  /** PaymentPayload and backend request as JSON, to finish the call without the buyer. */
  readonly proof: string;
  readonly backendRequest: string;
  /** Digest of payId and the caller's idempotency key, which is a secret (contract 4.4). */
  readonly keyDigest?: string;
  /**
   * Digest of payId and the buyer's token, which is a secret (contract 4.5). A record never has it
   * beside a key, which counts alone; the terms of a call may bring both.
   */
  readonly tokenDigest?: string;
  /** `proofDigest` of the proof that reserved it. */
  readonly proofDigest: string;
  /**
   * The mandate of this purchase as text (`StoredMandate`). Its uses are reserved, committed and
   * released in the writes of this record; only the mandate of the first reservation counts.
   */
  readonly mandate?: string;
  /** The backend answers before the money moves; absent: the money moves first. */
  readonly settle?: 'after';
}

/**
 * How the end of a settlement is known.
 *
 * - Paid: `logs`, the log pair on chain; `claim`, the facilitator states it, where no chain is
 *   asked.
 * - Worthless: `expired`, unused when the chain's head passed `validBefore`; `elsewhere`, cancelled
 *   or spent on something else; `unsent`, refused before anything could be sent; `unclaimed`, it
 *   has paid the payee, and another store or seller caused that.
 * - Either: `operator`, the operator's decision where nothing else decided in time.
 */
export type PaidEvidence = 'logs' | 'claim' | 'operator';
export type WorthlessEvidence = 'expired' | 'elsewhere' | 'unsent' | 'unclaimed' | 'operator';
export type Evidence = PaidEvidence | WorthlessEvidence;

/** One payment. Times in milliseconds of the store's clock. */
export interface PaymentRecord extends PaymentTerms, PaymentFacts {
  readonly state: PaymentState;
  /** Random name of the attempt that may write. */
  readonly owner: string;
  /** Grows with every take-over; a paused owner's writes are refused. */
  readonly fence: number;
  /** 0 when no attempt works on it. */
  readonly leaseUntil: number;
  /** When a reconciler should look at it, 0: never again (a final state). */
  readonly dueAt: number;
  /** Token of the last applied command: the same command again changes nothing. */
  readonly step: string;
  /** Deliveries that failed or died, as `advance` in table.ts counts them. */
  readonly tries: number;
  readonly reservedAt: number;
  readonly changedAt: number;
  readonly settledAt?: number;
}

/**
 * `begun`: bytes of an answer may have left; the state `delivered` confirms its end. `ended`: its
 * process recorded that no byte left.
 */
type Sending = 'begun' | 'ended';

/** Largest body of an answer that is kept, bytes (contract 4.4). */
export const MAX_KEPT_BYTES = 262_144;
/** The one header field of an answer whose body is sealed; no backend's answer can have it. */
export const SEALED_ANSWER = 'acg-sealed';
/** Largest body of a sealed answer, bytes; the body contains the header fields. */
export const MAX_STORED_ANSWER_BYTES = MAX_KEPT_BYTES + 65_536;

/** An answer of the backend as it was relayed, with the headers that may be relayed. */
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array;
}

/** An answer that becomes readable in the same write as the state it belongs to. */
export interface Keeping {
  /** Absent: the one that is kept already. */
  readonly answer?: KeptAnswer;
  /** How long it can be read from now on, milliseconds. */
  readonly forMs: number;
}

export interface Reserve {
  readonly terms: PaymentTerms;
  readonly owner: string;
  readonly leaseMs: number;
  /**
   * The longest lease in use, milliseconds: one with more left was granted before the store's clock
   * went back, and is cut to this. Absent: no lease is cut.
   */
  readonly longestMs?: number;
  /** `proofDigest` of the proof, the name of its refusal; absent where none was brought. */
  readonly proof?: string;
  /** Whether the token of the terms may become a secret; absent for the terms of a record. */
  readonly token?: NewToken;
  /** Of a proof that the rail has verified. */
  readonly verified?: Verified;
}

/**
 * A new record begins as `settling` with these events, before `untilMs` of the store's clock;
 * later too little is left of the proof's window, and it begins as `reserved`, without them.
 */
export interface Verified {
  readonly untilMs: number;
  readonly events: readonly EventDraft[];
}

/**
 * `worthless`: old or not ours. `issued`: ours, and it counts unless another payment showed it
 * first; `id` is SHA-256 hex of the token, remembered for `forMs` milliseconds.
 */
export type NewToken =
  | { readonly kind: 'worthless' }
  | { readonly kind: 'issued'; readonly id: string; readonly forMs: number };

/**
 * - `granted`: the caller owns the record now, new, its own again or taken over; see its state.
 * - `in_flight`: another attempt works on it.
 * - `conflict`: the authorization bought something else.
 * - `completed`: nothing is left to do, since `endedMs` milliseconds.
 * - `guarded`: something is left, but only for a call with the secret that came first.
 * - `mandate`: there was no record, and the mandate cannot be used; nothing was written.
 * - `refused`: there was no record, and the provider refused this proof before; nothing was
 *   written.
 */
export type Reservation =
  | { readonly kind: 'granted'; readonly record: PaymentRecord }
  | { readonly kind: 'in_flight'; readonly record: PaymentRecord; readonly leaseLeftMs: number }
  | { readonly kind: 'conflict'; readonly record: PaymentRecord }
  | { readonly kind: 'guarded'; readonly record: PaymentRecord }
  | { readonly kind: 'completed'; readonly record: PaymentRecord; readonly endedMs: number }
  | { readonly kind: 'mandate'; readonly reason: UseRefusal }
  | { readonly kind: 'refused'; readonly reason: string };

/** A remembered refusal: its buyer may sign anew, so no later copy of the proof is settled. */
export interface Refusal {
  /** `proofDigest`: it covers the signature, so a forged copy refuses only itself. */
  readonly proof: string;
  /** Token of contract 1.3, at most 64 characters. */
  readonly reason: string;
  /** Unix milliseconds: from here on the proof is too old anyway. */
  readonly until: number;
  /** Longest time from now, milliseconds: a proof may be valid for years. */
  readonly atMostMs: number;
}

/** The right of one attempt to work on a record. */
export interface Claim {
  readonly payId: string;
  readonly owner: string;
  readonly fence: number;
}

/** A claim with the token of one write. */
export interface Holder extends Claim {
  /** Unique for each command; a retried command carries the same. */
  readonly step: string;
  /**
   * The record as the attempt last saw it: the ledger takes proof and backend request from it
   * instead of the store, and compares its step for `unchanged`.
   */
  readonly seen?: PaymentRecord;
}

/** The members that each write may have beside its subject. */
interface Writing extends Holder {
  /** New lease from now, 0 to 600,000 ms; 0 gives the lease up. Ignored in final states. */
  readonly leaseMs: number;
  /** Only while the record is as it was `seen`: after any other write the answer is `fenced`. */
  readonly unchanged?: true;
  /** How long after the lease the reconciler waits with its look, milliseconds; usually 0. */
  readonly againMs?: number;
  readonly facts?: PaymentFacts;
  readonly keeping?: Keeping;
}

/** A change of state with everything that must become true with it. */
export interface Advance extends Writing {
  readonly to: PaymentState;
  readonly receipt?: Receipt;
  /** Id of the receipt that is deleted: a payment that was not made has none. */
  readonly dropReceipt?: string;
  readonly events: readonly EventDraft[];
}

/** Facts, a lease or an answer while the record stays in its state, with events. */
export interface Note extends Writing {
  readonly receipt?: Receipt;
  readonly events?: readonly EventDraft[];
}

/**
 * Facts that a record learns after its reservation. They come with a note (write-ahead of a
 * transaction) or with a change of state.
 */
export interface PaymentFacts {
  readonly transaction?: string;
  /** Signed transaction written ahead of its broadcast (local rail). */
  readonly rawTransaction?: string;
  /** Why it was refused or withdrawn; of a delivery, its progress (payment-receipt.ts). */
  readonly reason?: string;
  readonly evidence?: Evidence;
  /** The store had lost the record, the chain showed the payment (contract 4.3, `onStoreLoss`). */
  readonly recovered?: 'chain';
  readonly sending?: Sending;
  /** Deliveries of which bytes may have left. */
  readonly sendings?: number;
  /** The most bytes of an answer that left without its end, and how many that answer has. */
  readonly sentBytes?: number;
  /** 0: not known. */
  readonly ofBytes?: number;
  /** The last transaction that was signed to send the money back, or the one that did. */
  readonly refundTransaction?: string;
  /**
   * HTTP status of the backend's answer that was there before the settlement. Only a change to
   * `worked` or `settling` brings it, together with the answer.
   */
  readonly answered?: number;
  /**
   * Of a refused record with an answer: the payId of the payment that buys the answer. Only a note
   * to a refused record brings it.
   */
  readonly bought?: string;
  /** Of a record that is made again: the token's digest in the transaction that paid. */
  readonly tokenDigest?: string;
}

/**
 * `fenced`: another owner took over, or an `unchanged` write found a changed record. `illegal`: no
 * such transition. `lost`: no record.
 */
export type Advanced =
  | { readonly kind: 'done'; readonly record: PaymentRecord }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'illegal'; readonly state: PaymentState }
  | { readonly kind: 'lost' };

/** `gone`: the record is deleted, or was so before. */
export type Discarded = Exclude<Advanced, { kind: 'done' | 'lost' }> | { readonly kind: 'gone' };

/** The table of `table.ts`, made durable. Each command is one atomic write of the store. */
export interface PaymentLedger {
  reserve(command: Reserve): Promise<Reservation>;
  advance(command: Advance): Promise<Advanced>;
  /** Records facts without a change of state, and renews the lease or gives it up. */
  note(command: Note): Promise<Advanced>;
  /** Makes a running lease last longer. False: it is over, given up or another's. */
  renew(claim: Claim, leaseMs: number): Promise<boolean>;
  /**
   * Deletes a record that is still `reserved`: nothing was sent. The proof may be used again,
   * unless the provider refused it: `refusal` is remembered in the same write.
   */
  discard(holder: Holder, events: readonly EventDraft[], refusal?: Refusal): Promise<Discarded>;
  read(payId: string): Promise<PaymentRecord | undefined>;
  /** The answer that was kept with a payment, while it is kept. */
  kept(payId: string): Promise<KeptAnswer | undefined>;
  /**
   * Refused payments whose backend had answered, the latest first: work that was not paid for. As
   * long as their records are kept, about a day.
   */
  unpaid(limit: number): Promise<readonly PaymentRecord[]>;
  /**
   * Records whose `dueAt` has come, or comes within so many milliseconds, the longest overdue
   * first.
   */
  due(limit: number, withinMs?: number): Promise<readonly PaymentRecord[]>;
}
