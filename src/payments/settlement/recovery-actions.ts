import { randomUUID } from 'node:crypto';
import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentLedger, PaymentRecord, PaymentState } from '../ledger/ledger.ts';
import { receiptOf, uncertainReceipt } from '../ledger/payment-receipt.ts';
import { RETRY_WINDOW_MS } from '../ledger/retention.ts';
import { LEASE_MS } from './leases.ts';
import { MOST_TRIES, SHORTEST_WINDOW_MS, windowLeftMs } from './patience.ts';

/** What a reconciler can end, or leave to its buyer, without asking the rail or the merchant. */

/** Nothing to do before the buyer comes or the window ends. */
export async function wait(ledger: PaymentLedger, held: PaymentRecord): Promise<void> {
  await ledger.note({ ...fencingToken(held), leaseMs: 0, againMs: windowLeftMs(held), ...uncertainReceipt(held) });
}

/** Nothing was sent: the buyer can bring the same proof again. */
export async function forget(ledger: PaymentLedger, record: PaymentRecord): Promise<void> {
  const held = await takeOver(ledger, record, 'reserved');
  if (held !== undefined) await ledger.discard(fencingToken(held), []);
}

/** The merchant failed too often for more tries behind the buyer's back. */
export async function leaveToBuyer(ledger: PaymentLedger, record: PaymentRecord): Promise<void> {
  const held = await takeOver(ledger, record, 'undelivered');
  if (held !== undefined) await wait(ledger, held);
}

export async function refund(ledger: PaymentLedger, record: PaymentRecord): Promise<void> {
  const held = await takeOver(ledger, record, 'undelivered');
  if (held === undefined) return;
  const at = new Date();
  const receipt = receiptOf(held, {
    settledAt: new Date(held.settledAt ?? at),
    at,
    durationMs: 0,
    delivery: undefined,
    refundDue: true,
  });
  await ledger.advance({ ...fencingToken(held), to: 'refundDue', leaseMs: 0, receipt, events: [] });
}

/** A settlement that nothing could decide for a day after its authorization ended: neither the chain nor the facilitator ever will. */
export function neverDecided({ state, dueAt, validBefore }: PaymentRecord): boolean {
  return state === 'settling' && dueAt >= validBefore * 1_000 + RETRY_WINDOW_MS;
}

/** Leaves it to the operator, who finds it in his list: it may have been paid, so nothing is given back and nothing sold for it by itself. */
export async function leaveToOperator(
  ledger: PaymentLedger,
  record: PaymentRecord,
  warn: (facts: { readonly payId: string; readonly err: unknown }) => void,
): Promise<void> {
  const held = await takeOver(ledger, record, 'settling');
  if (held === undefined) return;
  const at = new Date();
  const receipt = receiptOf(held, { settledAt: at, at, durationMs: 0, delivery: undefined, unknown: true });
  const facts = { reason: UNDECIDED };
  await ledger.advance({ ...fencingToken(held), to: 'unresolved', leaseMs: 0, facts, receipt, events: [] });
  const how = `decide it: acg reconcile --decide ${record.payId} paid|unpaid`;
  warn({ payId: record.payId, err: new Error(`nothing could tell whether a payment was made; ${how}`) });
}

/** `reason` of a record that waits for an operator. */
const UNDECIDED = 'undecided';

/** A record is looked at when it is due, so that is the least that the store's clock can say now. */
export function owesRefund({ state, settledAt, dueAt, tries, keyDigest, tokenDigest }: PaymentRecord): boolean {
  const since = dueAt - (settledAt ?? dueAt);
  // Without a secret any onlooker may have made the tries: they take nothing from the buyer's time.
  const guarded = keyDigest !== undefined || tokenDigest !== undefined;
  const hopeless = guarded && tries >= MOST_TRIES && since >= SHORTEST_WINDOW_MS;
  return state === 'undelivered' && (since >= RETRY_WINDOW_MS || hopeless);
}

/**
 * Takes a record over that is still in the state in which it was found. One that moved on meanwhile, or was lost and began anew as a
 * reservation, is given back at once: nobody must wait for a lease under which nobody works.
 */
async function takeOver(
  ledger: PaymentLedger,
  terms: PaymentRecord,
  found: PaymentState,
): Promise<PaymentRecord | undefined> {
  const reservation = await ledger.reserve({ terms, owner: randomUUID(), leaseMs: LEASE_MS, longestMs: LEASE_MS });
  if (reservation.kind !== 'granted') return undefined;
  const { record } = reservation;
  if (record.state === found) return record;
  await ledger.note({ ...fencingToken(record), leaseMs: 0 });
  return undefined;
}
