import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import { passed } from '../steps.ts';
import { LEASE_MS } from './leases.ts';
import { persist } from './persist.ts';
import { type LedgerContext, leaveUncertain } from './record-outcome.ts';
import type { SettlementMade, SettlementRequest } from './settlement-request.ts';

/**
 * The write before anything is sent, and then what it is for. When the write may stand although nobody confirmed it, a reconciler may
 * settle what this call did not: then the outcome is open. `verified`: whether the rail was asked and said yes, which is an event.
 * @throws when the store is silent and nothing was written
 */
export async function beginSettling(
  books: LedgerContext,
  { journal }: Pick<SettlementRequest, 'journal'>,
  record: PaymentRecord,
  verified: boolean,
  then: (settling: PaymentRecord) => Promise<SettlementMade>,
): Promise<SettlementMade> {
  const earlier = journal.take();
  if (verified) journal.record('payment.verified', { status: 'ok', paymentProvider: 'x402' });
  const events = [...earlier, ...journal.take()];
  const step = { ...fencingToken(record), to: 'settling', leaseMs: LEASE_MS, events } as const;
  const settling = await persist(() => books.ledger.advance(step), books.time);
  if (settling.kind === 'done') {
    passed('settling', record.payId);
    return orUncertain(books, settling.record, () => then(settling.record));
  }
  journal.putBack(earlier);
  if (settling.kind === 'unwritten') {
    if (settling.mayStand) return leaveUncertain(books, record, settling.cause);
    throw settling.cause;
  }
  if (settling.kind === 'illegal') throw new Error(`illegal transition ${settling.state} -> settling`);
  return { kind: 'in_flight' };
}

/** Once a settlement may have begun, whatever fails leaves its outcome open: it is never an error of this call alone. */
export async function orUncertain(
  books: LedgerContext,
  record: PaymentRecord,
  step: () => Promise<SettlementMade>,
): Promise<SettlementMade> {
  try {
    return await step();
  } catch (cause) {
    return leaveUncertain(books, record, cause);
  }
}
