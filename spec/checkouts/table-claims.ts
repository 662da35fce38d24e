import {
  type ClaimRecord,
  claimCheckout,
  finishCheckout,
  type LockRecord,
  type Outcome,
  releaseCheckout,
  type Standing,
  unknownCheckout,
} from '../../src/checkouts/claim-table.ts';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { type OwnerOutcome, type OwnerRecord, ownershipOf, ownSession } from '../../src/checkouts/sessions.ts';

/** The port over the pure table. `now`: the store's clock, milliseconds. */
export function tableClaims(now: () => number): CheckoutClaims {
  const records = new Map<string, ClaimRecord>();
  const locks = new Map<string, LockRecord>();
  const owners = new Map<string, OwnerRecord>();
  const onOwner = async <Answer>(
    session: string,
    command: (found: OwnerRecord | undefined) => OwnerOutcome<Answer>,
  ): Promise<Answer> => {
    const { answer, next } = command(owners.get(session));
    put(owners, session, next);
    return answer;
  };
  const write = async <Answer>(
    { name, lock }: { readonly name: string; readonly lock: string | undefined },
    command: (found: Standing) => Outcome<Answer>,
  ): Promise<Answer> => {
    const found = { record: records.get(name), lock: lock === undefined ? undefined : locks.get(lock) };
    const { answer, next } = command(found);
    put(records, name, next.record);
    if (lock !== undefined) put(locks, lock, next.lock);
    return answer;
  };
  return {
    claim: (claim) => write(claim, (found) => claimCheckout(found, claim, now())),
    finish: (hold, answer) => write(hold, (found) => finishCheckout(found, hold, answer, now())),
    unknown: (hold, end) => write(hold, (found) => unknownCheckout(found, hold, end, now())),
    release: (hold) => write(hold, (found) => releaseCheckout(found, hold, now())),
    own: (owning) => onOwner(owning.session, (found) => ownSession(found, owning, now())),
    ownership: (owning) => onOwner(owning.session, (found) => ownershipOf(found, owning, now())),
  };
}

function put<Row>(rows: Map<string, Row>, name: string, row: Row | undefined): void {
  if (row === undefined) rows.delete(name);
  else rows.set(name, row);
}
