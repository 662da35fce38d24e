import type { PaymentLedger, PaymentRecord, PaymentTerms, Reservation } from './ledger/ledger.ts';
import { NothingOwed } from './nothing-owed.ts';
import type { Sale } from './sale.ts';

/**
 * A call that came while the answer was being made has joined it, also when its turn came only afterwards. Both clocks count whole
 * milliseconds, and a call that came right after the delivery must not pass for one that came before.
 */
const CLOCK_GRAIN_MS = 2;

/**
 * The rows of CONTRACT 4.3 for an authorization that is not this call's to work on. `waitedMs`: how long the call had been here when
 * it asked the ledger.
 */
export async function answerStanding(
  ledger: Pick<PaymentLedger, 'kept'>,
  reservation: Exclude<Reservation, { kind: 'run' }>,
  { keyDigest, hintDigest }: Pick<PaymentTerms, 'keyDigest' | 'hintDigest'>,
  call: { readonly joined: boolean; readonly waitedMs: number },
): Promise<Sale> {
  if (reservation.kind === 'refused') return { kind: 'refused', owed: NothingOwed.refusedBefore(reservation) };
  if (reservation.kind === 'mandate') return { kind: 'mandate_used', reason: reservation.reason };
  const { kind, record } = reservation;
  const hasKey = keyDigest !== undefined && keyDigest === record.keyDigest;
  const hasHint = hintDigest !== undefined && hintDigest === record.hintDigest;
  const wasHere = (endedMs: number): boolean => call.joined || call.waitedMs - endedMs > CLOCK_GRAIN_MS;
  switch (kind) {
    case 'busy':
      return { kind: 'in_flight' };
    case 'used':
      return hasKey ? { kind: 'conflict' } : { kind: 'spent', state: 'used', record };
    case 'guarded':
      // Somebody works on it, or it waits for its buyer; without the key this is neither.
      return record.state === 'undelivered'
        ? { kind: 'spent', state: record.state, guarded: true, record }
        : { kind: 'in_flight', alone: true };
    case 'ended':
      return ended(ledger, record, hasKey || hasHint, wasHere(reservation.endedMs));
  }
}

async function ended(
  ledger: Pick<PaymentLedger, 'kept'>,
  record: PaymentRecord,
  isBuyer: boolean,
  joined: boolean,
): Promise<Sale> {
  switch (record.state) {
    case 'refused':
      return { kind: 'refused', owed: NothingOwed.refused(record, false) };
    case 'delivered': {
      // The proof is public once it is on chain: without the buyer's key or hint the answer goes only to calls that came while it was
      // being made.
      const mayHave = isBuyer || (joined && record.keyDigest === undefined);
      const kept = mayHave ? await ledger.kept(record.payId) : undefined;
      if (kept !== undefined) return { kind: 'again', record, kept, joined: joined && !isBuyer };
      return { kind: 'spent', state: 'delivered', record };
    }
    case 'refundDue':
      return { kind: 'spent', state: 'refundDue', record };
    default:
      return { kind: 'in_flight' };
  }
}
