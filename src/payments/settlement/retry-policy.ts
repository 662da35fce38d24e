/**
 * When work on a payment is tried again: how long the reconciler and a buyer wait, and how a write
 * that must not be lost is repeated.
 */

import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/transitions.ts';

/** Bounds of the wait before a reconciler looks at an uncertain settlement again, milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
export const LONGEST_WAIT_MS = 60_000;
/** An old settlement is not decided in the next second, so the wait is a share of its age. */
const SHARE_OF_AGE = 1 / 4;
/** Tries of the reconciler to deliver, before the delivery is left to the buyer. */
export const BACKGROUND_TRIES = 6;
/** After this many failed deliveries the merchant owes a refund, before the window ends. */
export const MOST_TRIES = 100;
/** But not before this, milliseconds after the settlement: a short outage may cause all tries. */
export const SHORTEST_WINDOW_MS = 60 * 60 * 1_000;
/**
 * Deliveries of which bytes may leave, before the backend is not called again for them: each may
 * have been read to its end. A kept answer is given as often as its buyer asks.
 */
export const MOST_SENDINGS = 3;

/** Between the end of an authorization and the block that shows it, milliseconds. */
const BLOCK_MS = 5_000;

/** Pauses between writes, milliseconds: a store fails over meanwhile, and a caller still waits. */
const PAUSES_MS: readonly number[] = [50, 250, 1_000];
/** The same where no caller waits: a store that restarts or fails over must not cost the write. */
export const PATIENT_PAUSES_MS: readonly number[] = [50, 250, 1_000, 2_000, 4_000, 8_000, 15_000];

/** When to look again at a settlement whose outcome is open, milliseconds from now. */
export function lookAgainMs({ changedAt, reservedAt }: PaymentRecord): number {
  return Math.round(Math.min(Math.max((changedAt - reservedAt) * SHARE_OF_AGE, SHORTEST_WAIT_MS), LONGEST_WAIT_MS));
}

/** When the chain shows the end of an unsent authorization, milliseconds from the last change. */
export function windowEndMs(record: PaymentRecord): number {
  const { validBefore, changedAt } = record;
  return Math.max(validBefore * 1_000 + BLOCK_MS - changedAt, lookAgainMs(record));
}

/** Before the next background delivery, milliseconds; the buyer's own retry goes first. */
export function deliverAgainMs(tries: number): number {
  return Math.min(SHORTEST_WAIT_MS * 2 ** Math.min(tries, 10), LONGEST_WAIT_MS);
}

/** How long an undelivered payment can be collected, milliseconds from the last change. */
export function windowLeftMs({ settledAt, changedAt }: PaymentRecord): number {
  return Math.max(0, (settledAt ?? changedAt) + RETRY_WINDOW_MS - changedAt);
}

/** No write was confirmed. `mayStand`: one of them may have been made. */
export interface Unwritten {
  readonly kind: 'unwritten';
  readonly cause: unknown;
  readonly mayStand: boolean;
}

/**
 * Repeats a write that must not be lost once money has moved. The command carries one step token,
 * so a repetition after a lost reply changes nothing twice. When the store stays silent this does
 * not throw but returns `unwritten`: the call is answered "uncertain", and after the lease another
 * attempt goes on.
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

/** The same pause until `forMs` milliseconds are over, however long each write takes. */
export function* pausesFor(forMs: number, pauseMs: number, time: Pick<Time, 'now'>): Iterable<number> {
  const end = time.now() + forMs;
  while (time.now() < end) yield pauseMs;
}

/** Whether a write that failed so may have been made: yes, unless the store's error excludes it. */
export function mayStandAfter(cause: unknown): boolean {
  return !(cause instanceof Error && 'mayStand' in cause && cause.mayStand === false);
}
