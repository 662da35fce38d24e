import { receiptIdsBefore } from '../../receipts/id.ts';
import type { Receipt, ReceiptBook } from '../../receipts/receipt.ts';
import type { Entry } from '../page.ts';
import { indexFor, parseReceipt, type ReceiptIndex, receiptPage } from '../receipt-json.ts';
import { type StoreLimits, TRIMMED_AT_ONCE } from '../store.ts';
import type { TrimCount } from '../trim-count.ts';
import type { Database } from './database.ts';

/** Writes inside a transaction that somebody else opened, and drops the oldest delivered ones over the bound once for all of them. */
export type PutReceipts = (receipts: readonly Receipt[]) => void;

/** The writes of the book, each inside a transaction that somebody else opened. */
export interface ReceiptRows {
  readonly put: PutReceipts;
  /** Writes those that are new; answers their ids. */
  readonly add: (receipts: readonly Receipt[]) => readonly string[];
  /** Drops some of what is past the bounds. True: there may be more. */
  readonly tidy: (now: number) => boolean;
}

export function receiptRows({ db }: Database, limits: StoreLimits, trimmed: TrimCount): ReceiptRows {
  const { receiptsMaxLength, receiptsMaxAgeMs } = limits;
  const upsert = db.prepare(
    'INSERT INTO receipts (id, receipt) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET receipt = excluded.receipt',
  );
  const insert = db.prepare('INSERT INTO receipts (id, receipt) VALUES (?, ?) ON CONFLICT (id) DO NOTHING');
  const done = db.prepare('SELECT done FROM tally');
  const oldest = db.prepare(
    'DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE delivered = 1 ORDER BY id LIMIT ?)',
  );
  const older = db.prepare(
    'DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE delivered = 1 AND id < ? ORDER BY id LIMIT ?)',
  );
  const trim = (): number => {
    const over = Math.min(Number(done.get()?.['done'] ?? 0) - receiptsMaxLength, TRIMMED_AT_ONCE);
    if (over <= 0) return 0;
    oldest.run(over);
    trimmed.add({ length: over });
    return over;
  };
  return {
    put(receipts) {
      for (const receipt of receipts) upsert.run(receipt.id, JSON.stringify(receipt));
      trim();
    },
    add(receipts) {
      const added = receipts.filter((receipt) => insert.run(receipt.id, JSON.stringify(receipt)).changes === 1);
      trim();
      return added.map(({ id }) => id);
    },
    tidy(now) {
      const over = trim();
      if (receiptsMaxAgeMs === undefined) return over === TRIMMED_AT_ONCE;
      const old = Number(older.run(receiptIdsBefore(now - receiptsMaxAgeMs), TRIMMED_AT_ONCE).changes);
      trimmed.add({ age: old });
      return over === TRIMMED_AT_ONCE || old === TRIMMED_AT_ONCE;
    },
  };
}

/** Sorts behind every id. */
const PAST_EVERY_ID = '~';

export function sqliteReceipts(database: Database, rows: ReceiptRows, trimmed: TrimCount): ReceiptBook {
  const { db } = database;
  const select = (where: string) =>
    db.prepare(`SELECT id, receipt FROM receipts WHERE ${where} AND id < ? ORDER BY id DESC LIMIT ?`);
  const all = db.prepare('SELECT id, receipt FROM receipts WHERE id < ? ORDER BY id DESC LIMIT ?');
  const byDelivery = select('delivered = ?');
  const byCall = select('call_id = ?');
  const uncertain = select('uncertain = 1');
  // Two indexes, each read no further than the page: a request may have paid, or collected what another paid.
  const byRequest = db.prepare(
    `SELECT id, receipt FROM (SELECT id, receipt FROM receipts WHERE request_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3)
     UNION SELECT id, receipt FROM (SELECT id, receipt FROM receipts WHERE resumed_from = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3)
     ORDER BY id DESC LIMIT ?3`,
  );
  const counts = db.prepare('SELECT done, owed, uncertain FROM tally');

  const read = (index: ReceiptIndex, than: string, count: number) => {
    switch (index.kind) {
      case 'call':
        return byCall.all(index.callId, than, count);
      case 'request':
        return byRequest.all(index.requestId, than, count);
      case 'uncertain':
        return uncertain.all(than, count);
      case 'delivered':
        return byDelivery.all(index.delivered ? 1 : 0, than, count);
      case 'all':
        return all.all(than, count);
    }
  };
  return {
    write: (receipts) => database.write(() => rows.put(receipts)),
    add: (receipts) => database.write(() => rows.add(receipts)),
    page(query) {
      const index = indexFor(query);
      const older = (than = PAST_EVERY_ID, count: number): Promise<readonly Entry<Receipt>[]> =>
        database.read(() =>
          read(index, than, count).map((row) => ({
            id: String(row['id']),
            item: parseReceipt(String(row['receipt'])),
          })),
        );
      return receiptPage(query, older);
    },
    counts: () =>
      database.read(() => {
        const row = counts.get();
        const of = (list: 'done' | 'owed' | 'uncertain'): number => Number(row?.[list] ?? 0);
        return { done: of('done'), owed: of('owed'), uncertain: of('uncertain') };
      }),
    trimmed: () => trimmed.inAll(),
  };
}
