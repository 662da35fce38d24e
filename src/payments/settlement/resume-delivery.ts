import { ANSWER_KEPT, REQUEST_MAY_BE_WRITTEN, REQUEST_NOT_WRITTEN } from '../ledger/delivery-progress.ts';
import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentFacts, PaymentRecord } from '../ledger/ledger.ts';
import { receiptOf, uncertainReceipt } from '../ledger/payment-receipt.ts';
import { LEASE_MS } from './leases.ts';
import { deliverAgainMs, windowLeftMs } from './patience.ts';
import { persist } from './persist.ts';
import type { LedgerContext } from './record-outcome.ts';
import type { SettlementMade, SettlementRequest } from './settlement-request.ts';

/**
 * The money moved earlier and nothing was delivered: collect now, unless the merchant might then do the work twice. `joined`: this call
 * has just waited for a delivery that failed; were each of its copies to try again, the merchant would have to bear them all.
 */
export async function resumeDelivery(
  books: LedgerContext,
  order: SettlementRequest,
  record: PaymentRecord,
  joined: boolean,
): Promise<SettlementMade> {
  const kept = record.reason === ANSWER_KEPT ? await books.ledger.kept(record.payId) : undefined;
  if (kept !== undefined) return collect(books, record, {}, kept);
  if (joined && record.state === 'undelivered') {
    const parked = { leaseMs: 0, againMs: deliverAgainMs(record.tries), ...uncertainReceipt(record) };
    await books.ledger.note({ ...fencingToken(record), ...parked });
    return { kind: 'failed', record, retryable: order.repeatable || record.reason === REQUEST_NOT_WRITTEN };
  }
  if (order.repeatable || record.reason === REQUEST_NOT_WRITTEN) {
    // Said before the request leaves, so that a crash on the way cannot let it out a second time.
    return collect(books, record, { reason: REQUEST_MAY_BE_WRITTEN }, undefined);
  }
  return leaveToBuyer(books, order, record);
}

async function collect(
  { ledger, time }: LedgerContext,
  record: PaymentRecord,
  facts: PaymentFacts,
  kept: Extract<SettlementMade, { kind: 'paid' }>['kept'],
): Promise<SettlementMade> {
  const command = { ...fencingToken(record), facts, leaseMs: LEASE_MS, ...uncertainReceipt(record) };
  const written = await persist(() => ledger.note(command), time);
  if (written.kind === 'done') return { kind: 'paid', record: written.record, kept };
  if (written.kind !== 'unwritten') return { kind: 'in_flight' };
  // It may have been written all the same, and the request did not leave.
  const unsaid = record.reason === undefined ? {} : { reason: record.reason };
  await ledger.note({ ...fencingToken(record), facts: unsaid, leaseMs: 0 }).catch(() => undefined);
  throw written.cause;
}

/** Nothing here may be sent again, so nobody need look at it before its window ends. */
async function leaveToBuyer(
  { ledger, time }: LedgerContext,
  order: SettlementRequest,
  record: PaymentRecord,
): Promise<SettlementMade> {
  const parked = { ...fencingToken(record), leaseMs: 0, againMs: windowLeftMs(record) };
  if (record.state === 'undelivered') {
    await ledger.note({ ...parked, ...uncertainReceipt(record) });
    return { kind: 'spent', state: 'undelivered', record };
  }
  // The attempt that was to deliver it died, and nobody has said so yet.
  const at = new Date();
  const command = {
    ...parked,
    to: 'undelivered',
    receipt: receiptOf(record, {
      settledAt: new Date(record.settledAt ?? at),
      at,
      durationMs: order.elapsedMs(),
      delivery: { backendStatus: 0, deliveredAt: undefined, failure: 'BACKEND_ERROR' },
    }),
    events: order.journal.take(),
  } as const;
  const written = await persist(() => ledger.advance(command), time);
  if (written.kind !== 'done') order.journal.putBack(command.events);
  if (written.kind === 'unwritten') throw written.cause;
  return written.kind === 'done'
    ? { kind: 'spent', state: 'undelivered', record: written.record }
    : { kind: 'in_flight' };
}
