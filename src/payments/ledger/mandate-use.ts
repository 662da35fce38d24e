import type { MandateClaim, UseRefusal } from '../../mandates/register/register.ts';
import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import { LedgerCorruption } from './invariants.ts';
import type { PaymentRecord, PaymentState, Reservation } from './ledger.ts';
import type { Outcome } from './table.ts';

/**
 * What becomes of the uses of a record's mandate when it comes into a state (ap2 11). Every other state holds them: the outcome of the
 * settlement is open, or the call is paid for, delivered or not.
 */
export const ENDS_USES: Readonly<Partial<Record<PaymentState, 'commit' | 'release'>>> = {
  settled: 'commit',
  refused: 'release',
};

/** The end of uses that were reserved. */
interface EndedUses {
  readonly claim: MandateClaim;
  readonly how: 'commit' | 'release';
}

/**
 * A reservation by the table, with the register asked where a new record comes with a mandate: what the register refuses is not written.
 * `use` reserves in the same write. @throws LedgerCorruption
 */
export function admitted(
  outcome: Outcome<Reservation>,
  before: PaymentRecord | undefined,
  use: (claim: MandateClaim) => UseRefusal | undefined,
): Outcome<Reservation> {
  const { record } = outcome;
  if (before !== undefined || record?.mandate === undefined) return outcome;
  const reason = use(claimOf(record.mandate));
  return reason === undefined ? outcome : { answer: { kind: 'mandate', reason }, record: undefined, changed: false };
}

/** What a write that changed a record ends; a record that is gone was a reservation. @throws LedgerCorruption */
export function endedUses(before: PaymentRecord | undefined, after: PaymentRecord | undefined): EndedUses | undefined {
  if (before?.mandate === undefined || before.state === after?.state) return undefined;
  const how = after === undefined ? 'release' : ENDS_USES[after.state];
  return how === undefined ? undefined : { claim: claimOf(before.mandate), how };
}

function claimOf(mandate: string): MandateClaim {
  const stored = readStoredMandate(mandate);
  if (stored === undefined) throw new LedgerCorruption('mandate is malformed');
  return stored.claim;
}
