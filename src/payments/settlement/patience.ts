import type { PaymentRecord } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/retention.ts';

/** Bounds of the wait before a reconciler looks at an uncertain settlement again, milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
export const LONGEST_WAIT_MS = 60_000;
/** A settlement that has been open for long will not be decided in the next second: wait a share of its age. */
const SHARE_OF_AGE = 1 / 4;
/** Deliveries by the reconciler are tried this often before they are left to the buyer. */
export const BACKGROUND_TRIES = 6;
/** After this many failed deliveries the merchant owes a refund, whatever is left of the window, */
export const MOST_TRIES = 100;
/** unless they were all made in one rush, which says nothing about the merchant, milliseconds after the settlement. */
export const SHORTEST_WINDOW_MS = 60 * 60 * 1_000;

/** When to look again at a settlement whose outcome is open, milliseconds from now. Times are the store's own. */
export function lookAgainMs({ changedAt, reservedAt }: PaymentRecord): number {
  return Math.round(Math.min(Math.max((changedAt - reservedAt) * SHARE_OF_AGE, SHORTEST_WAIT_MS), LONGEST_WAIT_MS));
}

/** Between the end of an authorization and the block that shows it, milliseconds. */
const BLOCK_MS = 5_000;

/** When the chain can show what became of an authorization that nobody sends, milliseconds from the record's last change. */
export function windowEndMs(record: PaymentRecord): number {
  const { validBefore, changedAt } = record;
  return Math.max(validBefore * 1_000 + BLOCK_MS - changedAt, lookAgainMs(record));
}

/** When to deliver in the background after so many failures, milliseconds: the buyer's own retry goes first. */
export function deliverAgainMs(tries: number): number {
  return Math.min(SHORTEST_WAIT_MS * 2 ** Math.min(tries, 10), LONGEST_WAIT_MS);
}

/** How long what was paid and not delivered can still be collected, milliseconds from the record's last change. */
export function windowLeftMs({ settledAt, changedAt }: PaymentRecord): number {
  return Math.max(0, (settledAt ?? changedAt) + RETRY_WINDOW_MS - changedAt);
}
