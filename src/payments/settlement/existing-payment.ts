import type { PaymentLedger, PaymentRecord, PaymentTerms, Reservation } from '../ledger/ledger.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import type { SettlementResult } from './settlement-request.ts';

/**
 * A call that came while the answer was being made has joined it, also when its turn came only afterwards: it is not told that its
 * answer is a repetition. Both clocks count whole milliseconds.
 */
export const CLOCK_GRAIN_MS = 2;

/**
 * The rows of contract 4.3 for an authorization that is not this call's to work on. `waitedMs`: how long the call had been here when
 * it asked the ledger.
 */
export async function answerExisting(
  ledger: Pick<PaymentLedger, 'kept'>,
  reservation: Exclude<Reservation, { kind: 'granted' }>,
  { keyDigest, tokenDigest }: Pick<PaymentTerms, 'keyDigest' | 'tokenDigest'>,
  call: { readonly joined: boolean; readonly waitedMs: number },
): Promise<SettlementResult> {
  if (reservation.kind === 'refused') return { kind: 'refused', owed: SafeToRechallenge.refusedBefore(reservation) };
  if (reservation.kind === 'mandate') return { kind: 'mandate_used', reason: reservation.reason };
  const { kind, record } = reservation;
  const hasKey = keyDigest !== undefined && keyDigest === record.keyDigest;
  const hasToken = tokenDigest !== undefined && tokenDigest === record.tokenDigest;
  const isBuyer = hasKey || hasToken;
  const wasHere = (endedMs: number): boolean => call.joined || call.waitedMs - endedMs > CLOCK_GRAIN_MS;
  switch (kind) {
    case 'in_flight':
      // A proof that came without a secret joins nothing: it is public, so the answer would be any onlooker's.
      return isBuyer ? { kind: 'in_flight', leaseLeftMs: reservation.leaseLeftMs } : { kind: 'in_flight', alone: true };
    case 'conflict':
      return hasKey ? { kind: 'conflict' } : { kind: 'spent', state: 'used', record };
    case 'guarded':
      // It is being worked on, or it waits for its buyer; without the secret this call is neither's.
      return record.state === 'undelivered'
        ? { kind: 'spent', state: record.state, guarded: true, record }
        : { kind: 'in_flight', alone: true };
    case 'completed':
      return ended(ledger, record, isBuyer, wasHere(reservation.endedMs));
  }
}

async function ended(
  ledger: Pick<PaymentLedger, 'kept'>,
  record: PaymentRecord,
  isBuyer: boolean,
  joined: boolean,
): Promise<SettlementResult> {
  switch (record.state) {
    case 'refused':
      return { kind: 'refused', owed: SafeToRechallenge.refused(record, false) };
    case 'delivered': {
      // The proof is public once it is on chain: the answer goes to the buyer's secret only.
      const kept = isBuyer ? await ledger.kept(record.payId) : undefined;
      if (kept !== undefined) return { kind: 'again', record, kept, joined };
      return { kind: 'spent', state: 'delivered', record };
    }
    case 'unresolved':
      return { kind: 'uncertain', record, cause: 'it waits for an operator to decide', ...transactionOf(record) };
    case 'refundDue':
      return { kind: 'spent', state: 'refundDue', record };
    default:
      return { kind: 'in_flight' };
  }
}

function transactionOf({ transaction }: PaymentRecord): { readonly transaction?: string } {
  return transaction === undefined ? {} : { transaction };
}
