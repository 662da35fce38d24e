/** Request and result of a settlement: the types between pipeline and settle.ts. */

import type { Cancellation, HeldConnection, ReserveBackend } from '../../backend/backend-exchange.ts';
import type { Journal } from '../../events/journal.ts';
import type { UseRefusal } from '../../mandates/register.ts';
import type { KeptAnswer, NewToken, PaymentRecord, PaymentTerms } from '../ledger/ledger.ts';
import type { Lease } from './attempt.ts';
import type { SafeToRechallenge } from './safe-to-rechallenge.ts';

/** The reason of a proof that the present offer does not allow (contract 1.3). */
export const SOLD_OTHERWISE = 'invalid_payment_requirements';

/**
 * The `refusal` of a collecting call: its record answers it, and without a record nothing begins
 * anew and the chain is not asked.
 */
export const NEVER_ANEW = 'not_sold';

/** One request to settle. */
export interface SettlementRequest {
  readonly terms: PaymentTerms;
  /** Use of the terms' token in a new record; absent where the terms are those of a record. */
  readonly token?: NewToken | undefined;
  /** The local checks' refusal of the proof; it counts unless a record has to answer. */
  readonly refusal: string | undefined;
  /** The digest that refusals are remembered by; absent when no proof was brought. */
  readonly proof?: string;
  /** Aborted when the buyer leaves; undefined without a buyer: then nothing new begins. */
  readonly left: Cancellation | undefined;
  readonly journal: Journal;
  /** Whether the backend may be sent this request a second time. */
  readonly repeatable: boolean;
  /** Total backend deadline, milliseconds: the settled record stays leased at least that long. */
  readonly backendTimeoutMs: number;
  /** Milliseconds since the call came in. */
  readonly elapsedMs: () => number;
  /** The settlement gate: false while the gateway must not start to move money (draining). */
  readonly gateOpen: () => boolean;
  /** Holds an open connection to the backend; asked right before money may move. */
  readonly reserveBackend: ReserveBackend;
  /** Of a call that is settled after the backend answered; absent where the money moves first. */
  readonly work?: WorkFirst;
}

/** How the backend's work comes before the money. */
export interface WorkFirst {
  /** Where the call came from, for the budget. */
  readonly network: string;
  /** Least rest of its window that the checks asked of the proof, seconds. */
  readonly leastSeconds: number;
  /** payId of a refused payment with a kept answer, which this call may buy. */
  readonly answerOf: string | undefined;
  /** Has the backend answer. Never rejects. */
  call(record: PaymentRecord, held: HeldConnection): Promise<Worked>;
}

/** The backend's result for a call whose answer is to be kept. */
export type Worked =
  | { readonly kind: 'answer'; readonly answer: KeptAnswer }
  | { readonly kind: 'failed'; readonly failure: WorkFailure };

/** Why there is no answer. `status` 0: none came. `reason`: where the status is not enough. */
export interface WorkFailure {
  readonly status: number;
  readonly reason?: string;
  readonly requestWritten: boolean;
  /** The whole answer, where the resource relays it unpaid. */
  readonly relayed?: KeptAnswer;
  readonly cause?: unknown;
}

/**
 * Why a settlement is put off although nothing is wrong with it, as in `details.reason`.
 * `relayer_unfunded`: the account that sends the payment cannot pay the gas. `backend_unreachable`:
 * the backend cannot be sent the call.
 */
export type PostponedFor = 'relayer_unfunded' | 'backend_unreachable';

/** The money has moved; the call may be delivered. */
export interface Paid {
  readonly kind: 'paid';
  readonly record: PaymentRecord;
  /** Ends with the delivery. */
  readonly lease: Lease;
  /** The backend's answer, when an earlier attempt got it and could not deliver it. */
  readonly kept: KeptAnswer | undefined;
  /**
   * For the delivery, where money moved in this attempt: `exchange` or `release` must be called.
   */
  readonly held: HeldConnection | undefined;
}

/**
 * Money may have moved. The same proof asks again; a new one might pay twice. The answer names no
 * time, because the end of the window shows nothing about what happened inside it.
 */
export interface Uncertain {
  readonly kind: 'uncertain';
  readonly record: PaymentRecord;
  readonly transaction?: string;
  readonly cause: unknown;
}

/**
 * The result of a request. Only `paid` may reach the backend; only `refused` may be answered 402.
 *
 * - `replayed`: the kept answer of a delivered payment. `joined`: the call had waited for it.
 * - `in_flight`: another attempt works on it. `alone`: the call does not wait: the answer would not
 *   be for it, or too many copies wait. `leaseLeftMs`: after this time the call may go on with it,
 *   unless the other attempt renews its lease.
 * - `failed`: paid and not delivered: the attempt that this call waited for failed, or the kept
 *   answer is gone.
 * - `conflict`: the same key and proof for another input.
 * - `spent`: the authorization is used. `guarded`: it waits for the secret that it was paid with,
 *   and this call did not bring that.
 * - `mandate_used`: the mandate cannot be used, now or ever. Nothing was written, asked or sent.
 * - `postponed`: nothing was taken and nothing is under way; the same proof begins anew.
 * - `crowded`: no place for the settlement or for its work is free. Nothing was sent.
 * - `gone`: the buyer left before anything was sent; what was reserved is given back.
 * - `unworked`: the backend gave no answer, and nothing was taken for it.
 */
export type SettlementResult =
  | Paid
  | { readonly kind: 'refused'; readonly owed: SafeToRechallenge }
  | { readonly kind: 'replayed'; readonly record: PaymentRecord; readonly kept: KeptAnswer; readonly joined: boolean }
  | { readonly kind: 'in_flight'; readonly alone?: true; readonly leaseLeftMs?: number }
  | { readonly kind: 'failed'; readonly record: PaymentRecord; readonly retryable: boolean }
  | { readonly kind: 'conflict' }
  | {
      readonly kind: 'spent';
      readonly state: 'used' | 'delivered' | 'undelivered' | 'refundDue' | 'refunding' | 'refunded';
      readonly guarded?: true;
      readonly record?: PaymentRecord;
    }
  | Uncertain
  | { readonly kind: 'mandate_used'; readonly reason: UseRefusal }
  | { readonly kind: 'unavailable'; readonly cause: string }
  | { readonly kind: 'postponed'; readonly reason: PostponedFor; readonly cause: string }
  | { readonly kind: 'crowded' }
  | { readonly kind: 'gate_closed' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unworked'; readonly failure: WorkFailure };

/** The result of one step: settle.ts adds lease and connection at the end of the attempt. */
export type StepResult = Exclude<SettlementResult, Paid> | Omit<Paid, 'lease' | 'held'>;
