/** Claims of A2A tasks in SQLite. */

import { type ClaimEnd, DECLINED, MAX_DECLINED, type TaskClaims } from '../../payments/settlement/task-claims.ts';
import { assertClaimant, assertNames, assertSpan } from '../port/task-claim.ts';
import type { Database } from './database.ts';

/** Expired rows that one command deletes: more than one, so that the tables shrink after a rush. */
const PURGE_BATCH = 20;

/** One task that a payment has claimed. */
interface Claim {
  readonly claimant: string;
  readonly attempts: readonly string[];
  readonly kept: boolean;
}

/** The database serializes commands that run at once. */
export function sqliteTaskClaims(database: Database): TaskClaims {
  const rows = taskRows(database);
  const holderOf = (task: string, now: number): string | undefined =>
    rows.read(task, now)?.claimant ?? (rows.isDeclined(task, now) ? DECLINED : undefined);
  const write = <Answer>(command: (now: number) => Answer): Promise<Answer> =>
    database.write((now) => {
      rows.purge(now);
      return command(now);
    });
  return {
    async holder(task) {
      assertNames(task);
      return write((now) => holderOf(task, now));
    },
    async claim(task, claimant, attempt, forMs) {
      assertClaimant(claimant);
      assertNames(task, attempt);
      assertSpan(forMs);
      return write((now) => {
        const holder = holderOf(task, now);
        if (holder !== undefined && holder !== claimant) return false;
        const { attempts = [], kept = false } = rows.read(task, now) ?? {};
        rows.write(task, { claimant, attempts: [...new Set([...attempts, attempt])], kept }, now + forMs);
        return true;
      });
    },
    async end(task, claimant, attempt, how) {
      assertClaimant(claimant);
      assertNames(task, attempt);
      await write((now) => {
        const claim = rows.read(task, now);
        if (claim?.claimant !== claimant) return;
        const left = ended(claim, attempt, how);
        if (left === undefined) rows.forget(task);
        else rows.change(task, left);
      });
    },
    async decline(task, forMs) {
      assertNames(task);
      assertSpan(forMs);
      return write((now) => {
        const holder = holderOf(task, now);
        if (holder === undefined) rows.decline(task, now + forMs);
        return holder === undefined || holder === DECLINED;
      });
    },
  };
}

/** Undefined: the task is free again. */
function ended(claim: Claim, attempt: string, how: ClaimEnd): Claim | undefined {
  const attempts = claim.attempts.filter((other) => other !== attempt);
  const kept = claim.kept || how === 'kept';
  return how === 'worthless' || (!kept && attempts.length === 0) ? undefined : { ...claim, attempts, kept };
}

/** Statements of the tables. They run inside the caller's transaction. */
function taskRows({ db }: Database) {
  const select = db.prepare('SELECT claimant, attempts, kept FROM task_claims WHERE name = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO task_claims (name, expires_at, claimant, attempts, kept) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at, claimant = excluded.claimant,
       attempts = excluded.attempts, kept = excluded.kept`,
  );
  const update = db.prepare('UPDATE task_claims SET attempts = ?, kept = ? WHERE name = ?');
  const remove = db.prepare('DELETE FROM task_claims WHERE name = ?');
  const declined = db.prepare('SELECT 1 FROM tasks_declined WHERE name = ? AND expires_at > ?');
  const addDeclined = db.prepare(
    `INSERT INTO tasks_declined (name, expires_at) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at`,
  );
  const trimDeclined = db.prepare(
    `DELETE FROM tasks_declined WHERE name NOT IN
       (SELECT name FROM tasks_declined ORDER BY expires_at DESC, name DESC LIMIT ${MAX_DECLINED})`,
  );
  const purges = ['task_claims', 'tasks_declined'].map((table) =>
    db.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
    ),
  );
  return {
    read(name: string, now: number): Claim | undefined {
      const row = select.get(name, now);
      if (row === undefined) return undefined;
      const attempts = JSON.parse(String(row['attempts'])) as readonly string[];
      return { claimant: String(row['claimant']), attempts, kept: row['kept'] === 1 };
    },
    write(name: string, { claimant, attempts, kept }: Claim, expiresAt: number): void {
      upsert.run(name, expiresAt, claimant, JSON.stringify(attempts), Number(kept));
    },
    change(name: string, { attempts, kept }: Claim): void {
      update.run(JSON.stringify(attempts), Number(kept), name);
    },
    forget(name: string): void {
      remove.run(name);
    },
    isDeclined: (name: string, now: number): boolean => declined.get(name, now) !== undefined,
    decline(name: string, expiresAt: number): void {
      addDeclined.run(name, expiresAt);
      trimDeclined.run();
    },
    purge(now: number): void {
      for (const purge of purges) purge.run(now);
    },
  };
}
