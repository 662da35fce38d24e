/** The claims of checkout operations over documents: the table decides. */

import type { How } from '../store/port/commit.ts';
import { type Changes, parsed, type Transact } from '../store/port/transact.ts';
import { assertCheckoutClaim, assertHold, assertOwning, assertSealedAnswer, assertUnknownEnd } from './claim-checks.ts';
import {
  type ClaimRecord,
  claimCheckout,
  finishCheckout,
  type LockRecord,
  type Outcome,
  releaseCheckout,
  type Standing,
  unknownCheckout,
} from './claim-table.ts';
import type { CheckoutClaims } from './claims.ts';
import { type OwnerOutcome, type OwnerRecord, ownershipOf, ownSession } from './sessions.ts';

const claimKey = (name: string): string => `acp:idem:${name}`;
const lockKey = (name: string): string => `acp:lock:${name}`;
const ownerKey = (session: string): string => `acp:own:${session}`;

/**
 * A failover that forgot a claim or an answer would make it twice, so a replica has it before the
 * backend is called and before the caller is answered.
 */
export function documentClaims(transact: Transact): CheckoutClaims {
  const onOwner = <Answer>(
    session: string,
    how: How,
    command: (found: OwnerRecord | undefined, now: number) => OwnerOutcome<Answer>,
  ): Promise<Answer> =>
    transact([ownerKey(session)], (read, now) => {
      const found = parsed<OwnerRecord>(ownerKey(session), read(ownerKey(session)));
      const { answer, next } = command(found, now);
      return next === found ? { answer } : { answer, changes: { documents: [written(ownerKey(session), next)], how } };
    });
  const settle = <Answer>(
    { name, lock }: { readonly name: string; readonly lock: string | undefined },
    how: How,
    command: (found: Standing, now: number) => Outcome<Answer>,
  ): Promise<Answer> =>
    transact([claimKey(name), ...(lock === undefined ? [] : [lockKey(lock)])], (read, now) => {
      const found = {
        record: parsed<ClaimRecord>(claimKey(name), read(claimKey(name))),
        lock: lock === undefined ? undefined : parsed<LockRecord>(lockKey(lock), read(lockKey(lock))),
      };
      const { answer, next } = command(found, now);
      const documents = [
        // A repeated end writes its record again: a replica may not have it yet.
        ...(next.record !== found.record || (how === 'replicated' && answer === true)
          ? [written(claimKey(name), next.record)]
          : []),
        ...(lock !== undefined && next.lock !== found.lock ? [written(lockKey(lock), next.lock)] : []),
      ];
      return documents.length === 0 ? { answer } : { answer, changes: { documents, how } };
    });
  return {
    async claim(claim) {
      assertCheckoutClaim(claim);
      return settle(claim, 'replicated', (found, now) => claimCheckout(found, claim, now));
    },
    async finish(hold, answer) {
      assertHold(hold);
      assertSealedAnswer(answer);
      return settle(hold, 'replicated', (found, now) => finishCheckout(found, hold, answer, now));
    },
    async unknown(hold, end) {
      assertHold(hold);
      assertUnknownEnd(end);
      return settle(hold, 'now', (found, now) => unknownCheckout(found, hold, end, now));
    },
    async release(hold) {
      assertHold(hold);
      return settle(hold, 'now', (found, now) => releaseCheckout(found, hold, now));
    },
    async own(owning) {
      assertOwning(owning);
      return onOwner(owning.session, 'replicated', (found, now) => ownSession(found, owning, now));
    },
    async ownership(owning) {
      assertOwning(owning);
      return onOwner(owning.session, 'now', (found, now) => ownershipOf(found, owning, now));
    },
  };
}

function written(key: string, next: { readonly ends: number } | undefined): Changes['documents'][number] {
  return next === undefined ? { key, value: null } : { key, value: JSON.stringify(next), endMs: next.ends, made: next };
}
