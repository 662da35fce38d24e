import type { HeldConnection, ReserveBackend } from '../../backend/exchange.ts';
import type { Journal } from '../../events/journal.ts';
import type { UseRefusal } from '../../mandates/register/register.ts';
import type { KeptAnswer, NewToken, PaymentRecord, PaymentTerms } from '../ledger/ledger.ts';
import type { Lease } from './reservations.ts';
import type { SafeToRechallenge } from './safe-to-rechallenge.ts';

/**
 * The `refusal` of an order for what is not sold any more: its record answers it, and where that is
 * gone meanwhile nothing is begun anew and nothing asked of the chain.
 */
export const NEVER_ANEW = 'not_sold';

/** What a buyer brings to the settlement. */
export interface SettlementRequest {
  readonly terms: PaymentTerms;
  /** How the token of the terms stands with a new record; absent where the terms are a record's. */
  readonly token?: NewToken | undefined;
  /** What the local checks have against the proof; it counts unless a record has to be answered. */
  readonly refusal: string | undefined;
  /** The proof that was brought, as refusals are remembered by; absent when none was. */
  readonly proof?: string;
  /**
   * Aborted when the buyer leaves; undefined when there is none: then what was begun is finished,
   * and nothing new begun.
   */
  readonly left: AbortSignal | undefined;
  readonly journal: Journal;
  /** Whether the merchant may be sent this request a second time. */
  readonly repeatable: boolean;
  /**
   * Total backend deadline of the resource, milliseconds: the settled record stays leased at least
   * that long.
   */
  readonly backendTimeoutMs: number;
  /** Milliseconds since the call came in. */
  readonly elapsedMs: () => number;
  /** The settlement gate: false while the gateway must not start to move money (draining). */
  readonly gateOpen: () => boolean;
  /**
   * Holds an open connection to the merchant for this call; asked right before money may move,
   * which without one it does not.
   */
  readonly reserveBackend: ReserveBackend;
}

/**
 * Why a sale is put off although nothing is wrong with it, as `details.reason` says it.
 * `relayer_unfunded`: who has to send the payment cannot pay the gas. `backend_unreachable`: the
 * merchant could not be sent the call.
 */
export type PostponedFor = 'relayer_unfunded' | 'backend_unreachable';

/** The money has moved; the call may be delivered. */
export interface Paid {
  readonly kind: 'paid';
  readonly record: PaymentRecord;
  /** Ends with the delivery. */
  readonly lease: Lease;
  /** The merchant's answer, when an earlier attempt got it and could not hand it over. */
  readonly kept: KeptAnswer | undefined;
  /**
   * What the delivery travels on, where money moved in this attempt: `exchange` or `release` is
   * still to be called.
   */
  readonly held: HeldConnection | undefined;
}

/**
 * Money may have moved, nobody knows yet. The same proof asks again; a new one might pay twice. No
 * time is named after which it would not: the end of the window says nothing about what happened
 * inside it.
 */
export interface Uncertain {
  readonly kind: 'uncertain';
  readonly record: PaymentRecord;
  readonly transaction?: string;
  readonly cause: unknown;
}

/** What came of it. Only `paid` may reach the merchant; only `refused` may be answered 402. */
export type SettlementResult =
  | Paid
  | { readonly kind: 'refused'; readonly owed: SafeToRechallenge }
  /**
   * The answer that this payment bought, once more. `joined`: to a call that waited for it, not to
   * a later one.
   */
  | { readonly kind: 'again'; readonly record: PaymentRecord; readonly kept: KeptAnswer; readonly joined: boolean }
  /**
   * `alone`: there is nothing to wait for, because its answer would not be for this call.
   * `leaseLeftMs`: when this call may go on with it, unless the one that runs says again that it
   * lives.
   */
  | { readonly kind: 'in_flight'; readonly alone?: true; readonly leaseLeftMs?: number }
  /** The call that this one waited for was paid and not delivered. */
  | { readonly kind: 'failed'; readonly record: PaymentRecord; readonly retryable: boolean }
  /** The same key and proof for another input. */
  | { readonly kind: 'conflict' }
  | {
      readonly kind: 'spent';
      readonly state: 'used' | 'delivered' | 'undelivered' | 'refundDue';
      /** It waits for the secret it was paid with, and this call did not bring it. */
      readonly guarded?: true;
      readonly record?: PaymentRecord;
    }
  | Uncertain
  /**
   * The mandate of this purchase cannot be used, now or ever. Nothing was written, asked or sent.
   */
  | { readonly kind: 'mandate_used'; readonly reason: UseRefusal }
  | { readonly kind: 'unavailable'; readonly cause: string }
  /** Nothing was taken, and nothing is under way: the same proof begins anew. */
  | { readonly kind: 'postponed'; readonly reason: PostponedFor; readonly cause: string }
  /**
   * This payer, or all payers together, have as many settlements under way as there may be. Nothing
   * was asked or sent.
   */
  | { readonly kind: 'crowded' }
  | { readonly kind: 'gate_closed' }
  /**
   * The buyer left before anything was sent, so nothing is, and all that was reserved is given
   * back.
   */
  | { readonly kind: 'gone' };

/**
 * A result as the steps of a settlement make it: lease and connection stay with the settlement
 * until the end.
 */
export type SettlementMade = Exclude<SettlementResult, Paid> | Omit<Paid, 'lease' | 'held'>;
