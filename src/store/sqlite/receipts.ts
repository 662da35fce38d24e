import type { Receipt, ReceiptBook } from '../../receipts/receipt.ts';
import type { Entry } from '../page.ts';
import { parseReceipt, receiptPage } from '../receipt-json.ts';
import type { StoreLimits } from '../store.ts';
import type { Database } from './database.ts';

/** Writes inside a transaction that somebody else opened, and drops the oldest over the bound once for all of them. */
export type PutReceipts = (receipts: readonly Receipt[]) => void;

export function putReceipts({ db }: Database, limits: StoreLimits): PutReceipts {
  const upsert = db.prepare(
    'INSERT INTO receipts (id, receipt) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET receipt = excluded.receipt',
  );
  const counted = db.prepare('SELECT receipts FROM tally');
  const trim = db.prepare('DELETE FROM receipts WHERE id IN (SELECT id FROM receipts ORDER BY id LIMIT ?)');
  return (receipts) => {
    for (const receipt of receipts) upsert.run(receipt.id, JSON.stringify(receipt));
    const over = Number(counted.get()?.['receipts'] ?? 0) - limits.receiptsMaxLength;
    if (over > 0) trim.run(over);
  };
}

export function sqliteReceipts(database: Database, put: PutReceipts): ReceiptBook {
  const { db } = database;
  const head = db.prepare('SELECT id, receipt FROM receipts ORDER BY id DESC LIMIT ?');
  const below = db.prepare('SELECT id, receipt FROM receipts WHERE id < ? ORDER BY id DESC LIMIT ?');
  const older = (than: string | undefined, count: number): Promise<readonly Entry<Receipt>[]> =>
    database.read(() => {
      const rows = than === undefined ? head.all(count) : below.all(than, count);
      return rows.map((row) => ({ id: String(row['id']), item: parseReceipt(String(row['receipt'])) }));
    });
  return {
    write: (receipts) => database.write(() => put(receipts)),
    page: (query) => receiptPage(query, older),
  };
}
