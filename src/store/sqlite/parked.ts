import { MAX_CLAIMED_CALLS, MAX_PARKED_CALLS, type ParkedCalls } from '../../payments/parked-calls.ts';
import { assertClaimant, assertParkable, isParkedName } from '../parked.ts';
import type { Database } from './database.ts';

/** Calls that are over, deleted along with one command: more than one, so that the table shrinks after a rush. */
const PURGE_BATCH = 20;

/** Before the name of a claimant who asked more than once; no name has it. */
const SHARED = '+';

/** A parked call whose time is not over. */
interface ParkedRow {
  readonly call: string;
  readonly claimant: string | undefined;
}

/** Parked calls as rows; who has none in `claimant` waits. Commands that run at once are serialized by the database. */
export function sqliteParked(database: Database): ParkedCalls {
  const rows = parkedRows(database);
  const onCall = <Answer>(
    name: string,
    command: (found: ParkedRow | undefined, now: number) => Answer,
  ): Promise<Answer> =>
    database.write((now) => {
      rows.purge(now);
      return command(rows.read(name, now), now);
    });
  return {
    async park(name, call, forMs) {
      assertParkable(name, call, forMs);
      return onCall(name, (found, now) => {
        const full = found === undefined && (rows.areFull(now) || rows.claimed(now) >= MAX_CLAIMED_CALLS);
        if (full || found?.claimant !== undefined) return false;
        rows.write(name, { call, claimant: undefined }, now + forMs);
        return true;
      });
    },
    async claim(name, claimant, forMs) {
      assertClaimant(claimant, forMs);
      if (!isParkedName(name)) return { kind: 'none' };
      return onCall(name, (found, now) => {
        if (found === undefined) return { kind: 'none' };
        const { call } = found;
        // A repeated claim gets no more time: else its claimant could keep the call for ever.
        if (found.claimant === claimant || found.claimant === SHARED + claimant) {
          // From now on two attempts may run, and neither can give the call away from under the other.
          rows.share(name, SHARED + claimant);
          return { kind: 'yours', call, again: true };
        }
        if (found.claimant !== undefined) return { kind: 'taken' };
        rows.write(name, { call, claimant }, now + forMs);
        return { kind: 'yours', call, again: false };
      });
    },
    async release(name, claimant, forMs) {
      assertClaimant(claimant, forMs);
      if (!isParkedName(name)) return false;
      return onCall(name, (found, now) => {
        if (found === undefined) return false;
        // Nobody remembers who released it, and it waits for anybody: to whoever releases it again it is released.
        if (found.claimant === undefined) return true;
        if (found.claimant !== claimant) return false;
        const full = rows.areFull(now);
        // Claimed calls are not counted: whoever claims for nothing could get round the bound.
        if (full) rows.forget(name);
        else rows.write(name, { call: found.call, claimant: undefined }, now + forMs);
        return !full;
      });
    },
  };
}

/** Statements of the table. They run inside a transaction that somebody else opened. */
function parkedRows({ db }: Database) {
  const select = db.prepare('SELECT call, claimant FROM parked WHERE name = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO parked (name, expires_at, claimant, call) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at, claimant = excluded.claimant, call = excluded.call`,
  );
  const claimedNow = db.prepare('SELECT count(*) AS n FROM parked WHERE claimant IS NOT NULL AND expires_at > ?');
  const share = db.prepare('UPDATE parked SET claimant = ? WHERE name = ?');
  const remove = db.prepare('DELETE FROM parked WHERE name = ?');
  const counted = db.prepare('SELECT count(*) AS n FROM parked WHERE claimant IS NULL AND expires_at > ?');
  const ended = db.prepare(
    `DELETE FROM parked WHERE rowid IN (SELECT rowid FROM parked WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    read(name: string, now: number): ParkedRow | undefined {
      const row = select.get(name, now);
      if (row === undefined) return undefined;
      const { call, claimant } = row;
      return { call: String(call), claimant: claimant === null ? undefined : String(claimant) };
    },
    write(name: string, { call, claimant }: ParkedRow, expiresAt: number): void {
      upsert.run(name, expiresAt, claimant ?? null, call);
    },
    claimed: (now: number): number => Number(claimedNow.get(now)?.['n'] ?? 0),
    share(name: string, claimant: string): void {
      share.run(claimant, name);
    },
    forget(name: string): void {
      remove.run(name);
    },
    areFull: (now: number): boolean => Number(counted.get(now)?.['n'] ?? 0) >= MAX_PARKED_CALLS,
    purge(now: number): void {
      ended.run(now);
    },
  };
}
