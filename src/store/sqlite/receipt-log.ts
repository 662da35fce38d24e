/** The log of receipts in SQLite. */

import type { ReceiptLogStore } from '../../receipts/log/log-store.ts';
import type { ReceiptSeries } from '../../receipts/log/series.ts';
import type { Database } from './database.ts';

/** Sorts after every id. */
const PAST_EVERY_ID = '~';

/** Appends a line inside the caller's transaction. */
export type AppendLine = (line: string, now: number) => void;

export function appendLine({ db }: Database): AppendLine {
  const insert = db.prepare('INSERT INTO receipt_lines (at, line) VALUES (?, ?)');
  return (line, now) => {
    insert.run(now, line);
  };
}

export function sqliteReceiptLog(database: Database, append: AppendLine, series: ReceiptSeries): ReceiptLogStore {
  const { db } = database;
  const waiting = db.prepare('SELECT n, at, line FROM receipt_lines WHERE n > ? ORDER BY n LIMIT ?');
  const taken = db.prepare('DELETE FROM receipt_lines WHERE n IN (SELECT value FROM json_each(?))');
  const bounds = db.prepare('SELECT min(number) AS first, max(number) AS last FROM receipt_checkpoints');
  const sealed = db.prepare(
    'SELECT number, checkpoint, versions FROM receipt_checkpoints WHERE number BETWEEN ? AND ? ORDER BY number',
  );
  const checkpoints = db.prepare(
    'SELECT number, checkpoint FROM receipt_checkpoints WHERE number BETWEEN ? AND ? ORDER BY number',
  );
  const insert = db.prepare('INSERT INTO receipt_checkpoints (number, checkpoint, versions) VALUES (?, ?, ?)');
  const trim = db.prepare('DELETE FROM receipt_checkpoints WHERE number <= ?');
  const receipts = db.prepare('SELECT id, receipt FROM receipts WHERE id < ? ORDER BY id DESC LIMIT ?');
  const receipt = db.prepare('SELECT receipt FROM receipts WHERE id = ?');
  const readBounds = (): { readonly first: number; readonly last: number } | undefined => {
    const { first, last } = bounds.get() ?? {};
    return typeof first === 'number' && typeof last === 'number' ? { first, last } : undefined;
  };
  return {
    series,
    waiting: (after, limit) =>
      database.read(() =>
        waiting.all(after === undefined ? 0 : Number.parseInt(after, 10), limit).map(({ n, at, line }) => ({
          position: `${Number(n)}-0`,
          atMs: Number(at),
          line: String(line),
        })),
      ),
    bounds: () => database.read(readBounds),
    sealed: (from, to) =>
      database.read(() =>
        sealed.all(from, to).map(({ number, checkpoint, versions }) => ({
          number: Number(number),
          checkpoint: String(checkpoint),
          versions: String(versions),
        })),
      ),
    checkpoints: (from, to) =>
      database.read(() =>
        checkpoints.all(from, to).map(({ number, checkpoint }) => ({
          number: Number(number),
          checkpoint: String(checkpoint),
        })),
      ),
    seal: ({ number, checkpoint, versions }, { positions, trimmed, carried }) =>
      database.write((now) => {
        if (number !== (readBounds()?.last ?? 0) + 1) return false;
        insert.run(number, checkpoint, versions);
        taken.run(JSON.stringify(positions.map((position) => Number.parseInt(position, 10))));
        trim.run(trimmed);
        for (const { id, text, line } of carried) if (receipt.get(id)?.['receipt'] === text) append(line, now);
        return true;
      }),
    receipts: (than = PAST_EVERY_ID, limit) =>
      database.read(() =>
        receipts.all(than, limit).map(({ id, receipt: text }) => ({ id: String(id), text: String(text) })),
      ),
    receiptsOf: (ids) =>
      database.read(() => {
        const found = new Map<string, string>();
        for (const id of ids) {
          const text = receipt.get(id)?.['receipt'];
          if (typeof text === 'string') found.set(id, text);
        }
        return found;
      }),
  };
}
