import { MAX_REFUSALS, type Refusal, refusalEnds, SWEPT_REFUSALS } from '../../payments/ledger/refusals.ts';
import type { Database } from './database.ts';

/** Remembered refusals, each until its own time. The writes run inside a transaction that somebody else opened. */
interface RefusalRows {
  put(refusal: Refusal, now: number): void;
  reason(proof: string, now: number): string | undefined;
}

export function refusalRows({ db }: Database): RefusalRows {
  const select = db.prepare('SELECT reason FROM refusals WHERE proof = ? AND expires_at > ?');
  const insert = db.prepare(
    `INSERT INTO refusals (proof, expires_at, reason) VALUES (?, ?, ?)
     ON CONFLICT (proof) DO UPDATE SET expires_at = excluded.expires_at, reason = excluded.reason
       WHERE refusals.expires_at <= ?`,
  );
  const expired = db.prepare(
    `DELETE FROM refusals WHERE proof IN (SELECT proof FROM refusals WHERE expires_at <= ? LIMIT ${SWEPT_REFUSALS})`,
  );
  const count = db.prepare('SELECT count(*) AS n FROM refusals');
  const first = db.prepare(
    'DELETE FROM refusals WHERE proof IN (SELECT proof FROM refusals ORDER BY expires_at, proof LIMIT ?)',
  );
  return {
    put(refusal, now) {
      expired.run(now);
      insert.run(refusal.proof, refusalEnds(refusal, now), refusal.reason, now);
      const over = Number(count.get()?.['n'] ?? 0) - MAX_REFUSALS;
      if (over > 0) first.run(over);
    },
    reason(proof, now) {
      const row = select.get(proof, now);
      return row === undefined ? undefined : String(row['reason']);
    },
  };
}
