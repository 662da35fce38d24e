/** The book of receipts in SQLite. */

import { type Receipt, type ReceiptBook, receiptIdsBefore } from '../../receipts/receipt.ts';
import type { Entry } from '../port/page.ts';
import { indexFor, parseReceipt, type ReceiptIndex, receiptPage, type TrimCount } from '../port/receipts.ts';
import type { StoreLimits } from '../port/settings.ts';
import { TRIMMED_AT_ONCE } from '../port/store.ts';
import type { Database } from './database.ts';

/** Sorts after every id. */
const PAST_EVERY_ID = '~';

/** Writes receipts, then drops the oldest delivered ones over the bound. */
export type PutReceipts = (receipts: readonly Receipt[]) => void;

/** The writes of the book, each inside the caller's transaction. */
interface ReceiptRows {
  readonly put: PutReceipts;
  /** Drops the receipt of a payment that turned out not to be made. */
  readonly drop: (id: string) => void;
  /** Writes those that are new; answers their ids. */
  readonly add: (receipts: readonly Receipt[]) => readonly string[];
  /** Drops some receipts over the bounds. True: there may be more. */
  readonly tidy: (now: number) => boolean;
}

export function receiptRows({ db }: Database, limits: StoreLimits, trimmed: TrimCount): ReceiptRows {
  const { receiptsMaxLength, receiptsMaxAgeMs } = limits;
  const upsert = db.prepare(
    'INSERT INTO receipts (id, receipt) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET receipt = excluded.receipt',
  );
  const insert = db.prepare(
    `INSERT INTO receipts (id, receipt) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM receipts WHERE replay_key = ?3)
     ON CONFLICT (id) DO NOTHING`,
  );
  // A receipt that was rebuilt from the chain, under another id, gives way to the gateway's own.
  const replaced = db.prepare('DELETE FROM receipts WHERE replay_key = ? AND id <> ?');
  const reached = db.prepare(
    'UPDATE tally SET trimmed_from = min(coalesce(trimmed_from, ?1), ?1), trimmed_to = max(coalesce(trimmed_to, ?2), ?2)',
  );
  const dropped = db.prepare('DELETE FROM receipts WHERE id = ?');
  const done = db.prepare('SELECT done FROM tally');
  const oldest = db.prepare(
    'DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE delivered = 1 ORDER BY id LIMIT ?) RETURNING id',
  );
  const older = db.prepare(
    'DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE delivered = 1 AND id < ? ORDER BY id LIMIT ?) RETURNING id',
  );
  const trim = (): number => {
    const over = Math.min(Number(done.get()?.['done'] ?? 0) - receiptsMaxLength, TRIMMED_AT_ONCE);
    if (over <= 0) return 0;
    remember(oldest.all(over));
    trimmed.add({ length: over });
    return over;
  };
  const remember = (dropped: readonly Readonly<Record<string, unknown>>[]): void => {
    const ids = dropped.map(({ id }) => String(id)).toSorted();
    const [oldest, newest] = [ids[0], ids.at(-1)];
    if (oldest !== undefined && newest !== undefined) reached.run(oldest, newest);
  };
  return {
    drop(id) {
      dropped.run(id);
    },
    put(receipts) {
      for (const receipt of receipts) {
        if (receipt.payment !== undefined) replaced.run(receipt.payment.replayKey, receipt.id);
        upsert.run(receipt.id, JSON.stringify(receipt));
      }
      trim();
    },
    add(receipts) {
      const added = receipts.filter(
        (one) => insert.run(one.id, JSON.stringify(one), one.payment?.replayKey ?? null).changes === 1,
      );
      trim();
      return added.map(({ id }) => id);
    },
    tidy(now) {
      const over = trim();
      if (receiptsMaxAgeMs === undefined) return over === TRIMMED_AT_ONCE;
      const dropped = older.all(receiptIdsBefore(now - receiptsMaxAgeMs), TRIMMED_AT_ONCE);
      remember(dropped);
      const old = dropped.length;
      trimmed.add({ age: old });
      return over === TRIMMED_AT_ONCE || old === TRIMMED_AT_ONCE;
    },
  };
}

export function sqliteReceipts(database: Database, rows: ReceiptRows, trimmed: TrimCount): ReceiptBook {
  const { db } = database;
  const select = (where: string) =>
    db.prepare(`SELECT id, receipt FROM receipts WHERE ${where} AND id < ? ORDER BY id DESC LIMIT ?`);
  const all = db.prepare('SELECT id, receipt FROM receipts WHERE id < ? ORDER BY id DESC LIMIT ?');
  const byDelivery = select('delivered = ?');
  const byCall = select('call_id = ?');
  const byPayment = select('replay_key = ?');
  const uncertain = select('uncertain = 1');
  // Two indexes, each read no further than the page: a request may have paid, or may have collected
  // the delivery of an earlier one.
  const byRequest = db.prepare(
    `SELECT id, receipt FROM (SELECT id, receipt FROM receipts WHERE request_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3)
     UNION SELECT id, receipt FROM (SELECT id, receipt FROM receipts WHERE resumed_from = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3)
     ORDER BY id DESC LIMIT ?3`,
  );
  const counts = db.prepare('SELECT done, owed, uncertain FROM tally');
  const trimmedRange = db.prepare('SELECT trimmed_from, trimmed_to FROM tally');

  const read = (index: ReceiptIndex, than: string, count: number) => {
    switch (index.kind) {
      case 'call':
        return byCall.all(index.callId, than, count);
      case 'payment':
        return byPayment.all(index.payment, than, count);
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
    trimmedRange: () =>
      database.read(() => {
        const { trimmed_from: from, trimmed_to: to } = trimmedRange.get() ?? {};
        return typeof from === 'string' && typeof to === 'string' ? { from, to } : undefined;
      }),
  };
}
