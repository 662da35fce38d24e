import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';
import type { SignedTransaction } from '../rail.ts';
import { passed } from '../steps.ts';
import { LEASE_MS } from './leases.ts';

/**
 * Keeps a signed transaction before it is sent, so that whoever takes over can find it. The result throws when it could not be kept:
 * then nothing may be sent.
 */
export function writeAhead(
  ledger: Pick<PaymentLedger, 'note'>,
  record: PaymentRecord,
): (transaction: SignedTransaction) => Promise<void> {
  return async ({ hash, raw }) => {
    const facts = { transaction: hash, rawTransaction: raw };
    const noted = await ledger.note({ ...fencingToken(record), facts, leaseMs: LEASE_MS });
    if (noted.kind !== 'done') throw new Error(`write-ahead refused: ${noted.kind}`);
    passed('signed', record.payId);
  };
}
