import { assertRecord, LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { PaymentLedger, PaymentRecord } from '../../payments/ledger/ledger.ts';
import { dueAt, expiresAt } from '../../payments/ledger/retention.ts';
import { advance, discard, note, type Outcome, release, reserve } from '../../payments/ledger/table.ts';
import type { Database } from './database.ts';
import type { AppendEvents } from './feed.ts';
import type { PutReceipt } from './receipts.ts';

/** Expired records deleted along with one reservation: more than one, so that the table shrinks after a rush. */
const PURGE_BATCH = 20;

/** The ledger in SQLite: the pure table between a read and a write of one transaction. */
export function sqliteLedger(database: Database, append: AppendEvents, put: PutReceipt): PaymentLedger {
  const rows = paymentRows(database);
  /** Applies a pure command; `and` is what becomes true with it, and only when the command changed something. */
  const apply = <Answer>(
    payId: string,
    command: (record: PaymentRecord | undefined, now: number) => Outcome<Answer>,
    and: (now: number) => void = () => undefined,
  ): Promise<Answer> =>
    database.write((now) => {
      const { answer, record, changed } = command(rows.read(payId, now), now);
      if (!changed) return answer;
      if (record === undefined) rows.remove(payId);
      else rows.write(record);
      and(now);
      return answer;
    });

  return {
    reserve: (command) =>
      apply(
        command.terms.payId,
        (record, now) => reserve(record, command, now),
        (now) => rows.purge(now),
      ),
    advance: (command) =>
      apply(
        command.payId,
        (record, now) => advance(record, command, now),
        (now) => {
          if (command.receipt !== undefined) put(command.receipt);
          append(command.events, now);
        },
      ),
    note: (held, facts, leaseMs) => apply(held.payId, (record, now) => note(record, { ...held, facts, leaseMs }, now)),
    release: (held) => apply(held.payId, (record, now) => release(record, held, now)),
    discard: (held, events) =>
      apply(
        held.payId,
        (record) => discard(record, held),
        (now) => append(events, now),
      ),
    read: (payId) => database.read((now) => rows.read(payId, now)),
  };
}

function paymentRows({ db }: Database) {
  const select = db.prepare('SELECT record FROM payments WHERE pay_id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO payments (pay_id, expires_at, due_at, record) VALUES (?, ?, ?, ?)
     ON CONFLICT (pay_id) DO UPDATE SET expires_at = excluded.expires_at, due_at = excluded.due_at, record = excluded.record`,
  );
  const remove = db.prepare('DELETE FROM payments WHERE pay_id = ?');
  const purge = db.prepare(
    `DELETE FROM payments WHERE pay_id IN (SELECT pay_id FROM payments WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    read(payId: string, now: number): PaymentRecord | undefined {
      const row = select.get(payId, now);
      return row === undefined ? undefined : parseRecord(String(row['record']));
    },
    write(record: PaymentRecord): void {
      upsert.run(record.payId, expiresAt(record), dueAt(record) ?? null, JSON.stringify(record));
    },
    remove(payId: string): void {
      remove.run(payId);
    },
    purge(now: number): void {
      purge.run(now);
    },
  };
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
