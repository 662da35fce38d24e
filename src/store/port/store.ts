import type { CheckoutClaims } from '../../checkouts/claims.ts';
import type { EventFeed } from '../../events/event.ts';
import type { MandateRegister } from '../../mandates/register/register.ts';
import type { PaymentCensus } from '../../payments/ledger/census.ts';
import type { PaymentLedger } from '../../payments/ledger/ledger.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import type { TaskClaims } from '../../payments/settlement/task-claims.ts';
import type { ReceiptBook } from '../../receipts/receipt.ts';

/**
 * `degraded` still serves (contract 2, readiness); the cause goes to the log, never to an answer.
 */
export type StoreHealth =
  | { readonly status: 'ok' }
  | { readonly status: 'degraded' | 'unreachable' | 'unwritable'; readonly cause: string };

/**
 * Everything that must survive the process, behind one door: Redis for real deployments, SQLite as
 * the embedded default.
 */
export interface Store {
  readonly name: 'redis' | 'sqlite';
  readonly ledger: PaymentLedger;
  readonly feed: EventFeed;
  readonly receipts: ReceiptBook;
  /** Which payments have tasks of A2A that wait for one. */
  readonly tasks: TaskClaims;
  /** Uses of mandates by calls that pay nothing; those of payments lie in the ledger. */
  readonly mandates: MandateRegister;
  /** Operations of checkout sessions that are made once, whatever dies in between. */
  readonly checkouts: CheckoutClaims;
  /** Values that all processes of the merchant share. */
  readonly secrets: SharedSecrets;
  /** What stands open now, for whoever watches over the shop. @throws StoreError */
  census(): Promise<PaymentCensus>;
  /** Writes and reads back; a PING would not notice a read-only replica or a full disk. */
  check(): Promise<StoreHealth>;
  /**
   * How often what was sealed could not be opened, by what it was; absent where nothing can be
   * sealed.
   */
  readonly unreadable?: () => Readonly<Record<string, number>>;
  /**
   * One short step of housekeeping: drops receipts that are past their bounds, gives space back.
   * True: there is more to do.
   */
  tidy(): Promise<boolean>;
  close(): Promise<void>;
}

/** Thrown by every port when the store gave no answer. */
export class StoreError extends Error {
  /**
   * False only when it is certain that nothing was written; otherwise the write may or may not
   * stand.
   */
  readonly mayStand: boolean;

  constructor(cause: unknown, mayStand = true) {
    super('the store did not answer', { cause });
    this.name = 'StoreError';
    this.mayStand = mayStand;
  }
}

/**
 * What both adapters need. Counts are entries; `receiptsMaxLength` is of delivered ones, what is
 * owed does not count.
 */
export interface StoreLimits {
  readonly eventsMaxLength: number;
  readonly receiptsMaxLength: number;
  /**
   * Delivered receipts older than this are dropped, milliseconds; absent: only their number counts.
   */
  readonly receiptsMaxAgeMs?: number;
}

/**
 * Most receipts over the bounds that one write or one step of housekeeping drops: the rest goes
 * with the next ones.
 */
export const TRIMMED_AT_ONCE = 100;
