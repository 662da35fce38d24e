import { assertRecord, LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { expiresAt } from '../../payments/ledger/retention.ts';
import type { Database } from './database.ts';

/** Expired records deleted along with one reservation: more than one, so that the table shrinks after a rush. */
const PURGE_BATCH = 20;

/** Payment records, each readable until it expires. The writes run inside a transaction that somebody else opened. */
interface PaymentRows {
  /** @throws LedgerCorruption */
  read(payId: string, now: number): PaymentRecord | undefined;
  write(record: PaymentRecord): void;
  remove(payId: string): void;
  purge(now: number): void;
  /** A damaged record is passed over, so that it cannot stop the work on all others; who asks for it by its id hears of it. */
  due(now: number, limit: number): readonly PaymentRecord[];
}

export function paymentRows({ db }: Database): PaymentRows {
  const select = db.prepare('SELECT record FROM payments WHERE pay_id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO payments (pay_id, expires_at, due_at, record) VALUES (?, ?, ?, ?)
     ON CONFLICT (pay_id) DO UPDATE SET expires_at = excluded.expires_at, due_at = excluded.due_at, record = excluded.record`,
  );
  const remove = db.prepare('DELETE FROM payments WHERE pay_id = ?');
  const purge = db.prepare(
    `DELETE FROM payments WHERE pay_id IN (SELECT pay_id FROM payments WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  const due = db.prepare('SELECT record FROM payments WHERE due_at <= ? AND expires_at > ? ORDER BY due_at, pay_id');
  return {
    read(payId, now) {
      const row = select.get(payId, now);
      return row === undefined ? undefined : parseRecord(String(row['record']));
    },
    write(record) {
      upsert.run(record.payId, expiresAt(record), record.dueAt === 0 ? null : record.dueAt, JSON.stringify(record));
    },
    remove(payId) {
      remove.run(payId);
    },
    purge(now) {
      purge.run(now);
    },
    due(now, limit) {
      const found: PaymentRecord[] = [];
      if (limit < 1) return found;
      for (const { record } of due.iterate(now, now)) {
        const readable = readableRecord(String(record));
        if (readable !== undefined && found.push(readable) >= limit) break;
      }
      return found;
    },
  };
}

function readableRecord(json: string): PaymentRecord | undefined {
  try {
    return parseRecord(json);
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return undefined;
    throw thrown;
  }
}

/** @throws LedgerCorruption */
function parseRecord(json: string): PaymentRecord {
  let record: unknown;
  try {
    record = JSON.parse(json);
  } catch {
    throw new LedgerCorruption('the record is no JSON');
  }
  if (typeof record !== 'object' || record === null) throw new LedgerCorruption('the record is no object');
  return assertRecord(record);
}
