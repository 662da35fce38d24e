import type { Database } from './database.ts';

/** Rows whose time is over, deleted along with one reservation. */
const PURGE_BATCH = 20;

/** Which payment showed a token first. The writes run inside a transaction that somebody else opened. */
interface TokenRows {
  /** The payId of that payment; undefined when none did, or the time is over. */
  shownFor(id: string, now: number): string | undefined;
  note(id: string, payId: string, until: number): void;
  purge(now: number): void;
}

export function tokenRows({ db }: Database): TokenRows {
  const select = db.prepare('SELECT pay_id FROM buyer_tokens WHERE id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO buyer_tokens (id, expires_at, pay_id) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, pay_id = excluded.pay_id`,
  );
  const purge = db.prepare(
    `DELETE FROM buyer_tokens WHERE id IN (SELECT id FROM buyer_tokens WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    shownFor(id, now) {
      const row = select.get(id, now);
      return row === undefined ? undefined : String(row['pay_id']);
    },
    note(id, payId, until) {
      upsert.run(id, until, payId);
    },
    purge(now) {
      purge.run(now);
    },
  };
}
