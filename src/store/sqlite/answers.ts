import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { Keeping, KeptAnswer } from '../../payments/ledger/ledger.ts';
import type { Database } from './database.ts';

/** Expired answers deleted at once; each may be a quarter of a megabyte. */
const PURGE_BATCH = 20;

/** Kept answers, each readable until its own time. The writes run inside a transaction that somebody else opened. */
interface AnswerRows {
  put(payId: string, keeping: Keeping, now: number): void;
  /** @throws LedgerCorruption */
  read(payId: string, now: number): KeptAnswer | undefined;
  purge(now: number): void;
}

export function answerRows({ db }: Database): AnswerRows {
  const select = db.prepare('SELECT status, headers, body FROM answers WHERE pay_id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO answers (pay_id, expires_at, status, headers, body) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (pay_id) DO UPDATE SET expires_at = excluded.expires_at, status = excluded.status,
       headers = excluded.headers, body = excluded.body`,
  );
  const expired = db.prepare(
    `DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    put(payId, { answer: { status, headers, body }, forMs }, now) {
      upsert.run(payId, now + forMs, status, JSON.stringify(headers), body);
    },
    read(payId, now) {
      const row = select.get(payId, now);
      if (row === undefined) return undefined;
      const { status, headers, body } = row;
      if (typeof status !== 'number' || !(body instanceof Uint8Array))
        throw new LedgerCorruption('the kept answer is none');
      return { status, headers: parseHeaders(String(headers)), body };
    },
    purge(now) {
      expired.run(now);
    },
  };
}

/** @throws LedgerCorruption */
function parseHeaders(json: string): KeptAnswer['headers'] {
  try {
    return JSON.parse(json) as KeptAnswer['headers'];
  } catch {
    throw new LedgerCorruption('the headers of a kept answer are no JSON');
  }
}
