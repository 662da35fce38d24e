import type { Journal } from '../events/journal.ts';
import type { PaymentRecord, PaymentTerms, Reservation } from './ledger/ledger.ts';
import type { PaymentRequirements } from './x402/wire.ts';

/** What a buyer brings to the till. */
export interface Order {
  readonly terms: PaymentTerms;
  readonly offer: PaymentRequirements;
  /** What the local checks have against the proof; it counts unless a record has to be answered. */
  readonly refusal: string | undefined;
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

/** Money may have moved, nobody knows yet. The same proof asks again; a new one might pay twice. */
export interface Uncertain {
  readonly kind: 'uncertain';
  /** Unix seconds. */
  readonly validBefore: number;
  /** Whether a new proof is safe once `validBefore` has passed without an answer. */
  readonly resignSafe: boolean;
  readonly transaction?: string;
  readonly cause: unknown;
}

/** What came of it. Only `paid` may reach the merchant; only `refused` may be answered 402. */
export type Sale =
  | { readonly kind: 'paid'; readonly record: PaymentRecord }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly phase: 'verify' | 'settle';
      readonly transaction?: string;
      /** The refusal's event went with its transition. */
      readonly recorded?: boolean;
    }
  | { readonly kind: 'in_flight' }
  | {
      readonly kind: 'spent';
      readonly state: 'used' | 'delivered' | 'undelivered' | 'refundDue';
      readonly record?: PaymentRecord;
    }
  | Uncertain
  | { readonly kind: 'unavailable'; readonly cause: string }
  | { readonly kind: 'gate_closed' };

/** The rows of CONTRACT 4.3 for an authorization that is not the caller's to work on. */
export function notOurs(reservation: Exclude<Reservation, { kind: 'run' }>): Sale {
  const { record } = reservation;
  if (reservation.kind === 'busy') return { kind: 'in_flight' };
  if (reservation.kind === 'used') return { kind: 'spent', state: 'used', record };
  switch (record.state) {
    case 'refused':
      return {
        kind: 'refused',
        reason: record.reason ?? 'payment_refused',
        phase: 'settle',
        ...(record.transaction === undefined ? {} : { transaction: record.transaction }),
      };
    case 'delivered':
    case 'undelivered':
    case 'refundDue':
      return { kind: 'spent', state: record.state, record };
    default:
      return { kind: 'in_flight' };
  }
}

/** The outcome of a record that nobody knows. */
export function uncertain(record: PaymentRecord, cause: unknown, transaction: string | undefined): Uncertain {
  const { validBefore } = record;
  return {
    kind: 'uncertain',
    validBefore,
    resignSafe: true,
    cause,
    ...(transaction === undefined ? {} : { transaction }),
  };
}
