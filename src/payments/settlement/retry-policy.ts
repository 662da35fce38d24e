import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/transitions.ts';

/** Bounds of the wait before a reconciler looks at an uncertain settlement again, milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
export const LONGEST_WAIT_MS = 60_000;
/**
 * A settlement that has been open for long will not be decided in the next second: wait a share of
 * its age.
 */
const SHARE_OF_AGE = 1 / 4;
/** Deliveries by the reconciler are tried this often before they are left to the buyer. */
export const BACKGROUND_TRIES = 6;
/** After this many failed deliveries the merchant owes a refund, whatever is left of the window, */
export const MOST_TRIES = 100;
/**
 * unless they were all made in one rush, which says nothing about the merchant, milliseconds after
 * the settlement.
 */
export const SHORTEST_WINDOW_MS = 60 * 60 * 1_000;

/**
 * When to look again at a settlement whose outcome is open, milliseconds from now. Times are the
 * store's own.
 */
export function lookAgainMs({ changedAt, reservedAt }: PaymentRecord): number {
  return Math.round(Math.min(Math.max((changedAt - reservedAt) * SHARE_OF_AGE, SHORTEST_WAIT_MS), LONGEST_WAIT_MS));
}

/** Between the end of an authorization and the block that shows it, milliseconds. */
const BLOCK_MS = 5_000;

/**
 * When the chain can show what became of an authorization that nobody sends, milliseconds from the
 * record's last change.
 */
export function windowEndMs(record: PaymentRecord): number {
  const { validBefore, changedAt } = record;
  return Math.max(validBefore * 1_000 + BLOCK_MS - changedAt, lookAgainMs(record));
}

/**
 * When to deliver in the background after so many failures, milliseconds: the buyer's own retry
 * goes first.
 */
export function deliverAgainMs(tries: number): number {
  return Math.min(SHORTEST_WAIT_MS * 2 ** Math.min(tries, 10), LONGEST_WAIT_MS);
}

/**
 * How long what was paid and not delivered can still be collected, milliseconds from the record's
 * last change.
 */
export function windowLeftMs({ settledAt, changedAt }: PaymentRecord): number {
  return Math.max(0, (settledAt ?? changedAt) + RETRY_WINDOW_MS - changedAt);
}

/**
 * Pauses between attempts, milliseconds: long enough for a store that fails over inside a script,
 * short enough for a caller.
 */
const PAUSES_MS: readonly number[] = [50, 250, 1_000];
/** The same where no caller waits: a store that restarts or fails over must not cost the write. */
export const PATIENT_PAUSES_MS: readonly number[] = [50, 250, 1_000, 2_000, 4_000, 8_000, 15_000];

/** `mayStand`: whether one of the attempts may have been written all the same. */
export interface Unwritten {
  readonly kind: 'unwritten';
  readonly cause: unknown;
  readonly mayStand: boolean;
}

/**
 * Repeats a write that must not be lost once money has moved. The command carries one step token,
 * so a repetition after a lost reply changes nothing twice. When the store stays silent the answer
 * says so instead of throwing: the caller then answers "uncertain" and the record's lease lets
 * another attempt find out.
 */
export async function persist<T>(
  write: () => Promise<T>,
  time: Pick<Time, 'sleep'> = REAL_TIME,
  pauses: Iterable<number> = PAUSES_MS,
): Promise<T | Unwritten> {
  const left = pauses[Symbol.iterator]();
  let mayStand = false;
  for (;;) {
    try {
      return await write();
    } catch (cause) {
      mayStand ||= mayStandAfter(cause);
      const pause = left.next();
      if (pause.done === true) return { kind: 'unwritten', cause, mayStand };
      await time.sleep(pause.value);
    }
  }
}

/** The same pause until `forMs` milliseconds are over, however long each attempt takes. */
export function* pausesFor(forMs: number, pauseMs: number, time: Pick<Time, 'now'>): Iterable<number> {
  const end = time.now() + forMs;
  while (time.now() < end) yield pauseMs;
}

/**
 * Whether a write that failed so may have been made all the same: stores say so on their errors,
 * and what says nothing may stand.
 */
export function mayStandAfter(cause: unknown): boolean {
  return !(cause instanceof Error && 'mayStand' in cause && cause.mayStand === false);
}
