import type { Journal } from '../events/journal.ts';
import type { PaymentRecord, PaymentTerms, Reservation } from './ledger/ledger.ts';
import type { Proof } from './x402/rail.ts';
import type { PaymentRequirements } from './x402/wire.ts';

/** What a buyer brings to the till. */
export interface Order {
  readonly terms: PaymentTerms;
  readonly proof: Proof;
  readonly offer: PaymentRequirements;
  readonly journal: Journal;
  /** Whether the merchant may be sent this request a second time. */
  readonly repeatable: boolean;
  /** Total backend deadline of the resource: the settled record stays leased that long. */
  readonly backendTimeoutMs: number;
  /** Milliseconds since the call came in. */
  readonly elapsedMs: () => number;
  /** The settlement gate: false while the gateway must not start to move money (draining). */
  readonly gateOpen: () => boolean;
}

/** What came of it. Only `paid` may reach the merchant; only `refused` may be answered 402. */
export type Sale =
  | { readonly kind: 'paid'; readonly record: PaymentRecord }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly phase: 'verify' | 'settle';
      readonly transaction?: string;
    }
  | { readonly kind: 'in_flight' }
  | {
      readonly kind: 'spent';
      readonly state: 'used' | 'delivered' | 'undelivered' | 'refundDue';
      readonly record?: PaymentRecord;
    }
  | {
      readonly kind: 'uncertain';
      /** Unix seconds. */
      readonly validBefore: number;
      readonly transaction?: string;
      readonly cause: unknown;
    }
  | { readonly kind: 'unavailable'; readonly cause: string }
  | { readonly kind: 'gate_closed' };

/** The rows of CONTRACT 4.3 for an authorization that is not the caller's to work on. */
export function notOurs(reservation: Exclude<Reservation, { kind: 'run' }>): Sale {
  const { record } = reservation;
  if (reservation.kind === 'busy') return { kind: 'in_flight' };
  if (reservation.kind === 'used') return { kind: 'spent', state: 'used', record };
  switch (record.state) {
    case 'refused':
      return { kind: 'refused', reason: record.reason ?? 'payment_refused', phase: 'settle' };
    case 'delivered':
    case 'undelivered':
    case 'refundDue':
      return { kind: 'spent', state: record.state, record };
    default:
      return { kind: 'in_flight' };
  }
}

/** The outcome that nobody knows yet. The same proof asks again; a new one would pay twice. */
export function uncertain(record: PaymentRecord, cause: unknown, transaction: string | undefined): Sale {
  const { validBefore } = record;
  return { kind: 'uncertain', validBefore, cause, ...(transaction === undefined ? {} : { transaction }) };
}
