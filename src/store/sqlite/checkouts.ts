/**
 * The port of checkout claims over SQLite: each command runs the table of claims in one
 * transaction.
 */

import {
  type ClaimRecord,
  claimCheckout,
  finishCheckout,
  type LockRecord,
  type Outcome,
  releaseCheckout,
  type Standing,
  unknownCheckout,
} from '../../checkouts/claim-table.ts';
import type { CheckoutClaims } from '../../checkouts/claims.ts';
import { type OwnerOutcome, type OwnerRecord, ownershipOf, ownSession } from '../../checkouts/sessions.ts';
import {
  assertCheckoutClaim,
  assertHold,
  assertOwning,
  assertSealedAnswer,
  assertUnknownEnd,
} from '../port/checkout-claim.ts';
import type { Database } from './database.ts';

/**
 * Expired rows that one claim deletes: more than it adds, so that the tables shrink after a rush.
 */
const PURGE_BATCH = 20;

/** A key and, where the operation has one, its session. */
interface Names {
  readonly name: string;
  readonly lock: string | undefined;
}

/** Claims of checkout operations as rows. The database serializes commands that run at once. */
export function sqliteCheckouts(database: Database): CheckoutClaims {
  const claims = rowsOf<ClaimRecord>(database, 'checkouts');
  const locks = rowsOf<LockRecord>(database, 'checkout_locks');
  const owners = rowsOf<OwnerRecord>(database, 'checkout_owners');
  const purge = (now: number): void => {
    claims.purge(now);
    locks.purge(now);
    owners.purge(now);
  };
  const onOwner = <Answer>(
    session: string,
    command: (found: OwnerRecord | undefined, now: number) => OwnerOutcome<Answer>,
  ): Promise<Answer> =>
    database.write((now) => {
      const found = owners.read(session);
      const { answer, next } = command(found, now);
      if (next !== found) owners.put(session, next);
      return answer;
    });
  const settle = <Answer>(
    { name, lock }: Names,
    command: (found: Standing, now: number) => Outcome<Answer>,
    along: (now: number) => void = () => undefined,
  ): Promise<Answer> =>
    database.write((now) => {
      along(now);
      const found = { record: claims.read(name), lock: lock === undefined ? undefined : locks.read(lock) };
      const { answer, next } = command(found, now);
      if (next.record !== found.record) claims.put(name, next.record);
      if (lock !== undefined && next.lock !== found.lock) locks.put(lock, next.lock);
      return answer;
    });
  return {
    async claim(claim) {
      assertCheckoutClaim(claim);
      return settle(claim, (found, now) => claimCheckout(found, claim, now), purge);
    },
    async finish(hold, answer) {
      assertHold(hold);
      assertSealedAnswer(answer);
      return settle(hold, (found, now) => finishCheckout(found, hold, answer, now));
    },
    async unknown(hold, end) {
      assertHold(hold);
      assertUnknownEnd(end);
      return settle(hold, (found, now) => unknownCheckout(found, hold, end, now));
    },
    async release(hold) {
      assertHold(hold);
      return settle(hold, (found, now) => releaseCheckout(found, hold, now));
    },
    async own(owning) {
      assertOwning(owning);
      return onOwner(owning.session, (found, now) => ownSession(found, owning, now));
    },
    async ownership(owning) {
      assertOwning(owning);
      return onOwner(owning.session, (found, now) => ownershipOf(found, owning, now));
    },
  };
}

/** Statements of one of the tables. They run inside a transaction of the caller. */
function rowsOf<Row extends { readonly ends: number }>(
  { db }: Database,
  table: 'checkouts' | 'checkout_locks' | 'checkout_owners',
) {
  const select = db.prepare(`SELECT record FROM ${table} WHERE name = ?`);
  const upsert = db.prepare(
    `INSERT INTO ${table} (name, expires_at, record) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at, record = excluded.record`,
  );
  const remove = db.prepare(`DELETE FROM ${table} WHERE name = ?`);
  const ended = db.prepare(
    `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    read(name: string): Row | undefined {
      const row = select.get(name);
      return row === undefined ? undefined : (JSON.parse(String(row['record'])) as Row);
    },
    put(name: string, row: Row | undefined): void {
      if (row === undefined) remove.run(name);
      else upsert.run(name, row.ends, JSON.stringify(row));
    },
    purge(now: number): void {
      ended.run(now);
    },
  };
}
