import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { receiptId } from '../../src/receipts/receipt.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { receipt } from '../payments/ledger/samples.ts';
import { idsIn } from './opened.ts';
import { temporaryDirectory } from './temporary.ts';

const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 100 };
const DAY_MS = 86_400_000;
const NOW = 1_800_000_000_000;
const directory = temporaryDirectory();

describe('the book of receipts in SQLite', () => {
  it('has a damaged receipt on the list of the owed', async () => {
    const path = join(directory, 'damaged.db');
    const [owed, damaged] = [receiptId(2_000), receiptId(1_000)];
    const store = openSqliteStore({ path, limits: LIMITS });
    await store.receipts.write([receipt(owed, 'owed'), receipt(damaged, 'damaged')]);
    const db = new DatabaseSync(path);
    db.prepare("UPDATE documents SET value = 'no JSON' WHERE key = ?").run(`rcpt:${damaged}`);
    db.close();
    assert.deepEqual(idsIn(await store.receipts.page({ limit: 5, delivered: false })), [owed]);
    assert.deepEqual(await store.receipts.counts(), { done: 0, owed: 2, uncertain: 0 });
    await store.close();
  });

  it('reads a stretch of a list, by member or by score, from an index alone, without sorting', async () => {
    const path = join(directory, 'plans.db');
    const store = openSqliteStore({ path, limits: LIMITS });
    await store.close();
    const db = new DatabaseSync(path);
    for (const [order, index] of [
      ['member', 'PRIMARY KEY (list=? AND member<?)'],
      ['score', 'COVERING INDEX entries_order (list=? AND score<?)'],
    ] as const) {
      const sql = `SELECT member FROM entries WHERE list = ?${order === 'score' ? ' AND score <> 0' : ''} AND ${order} < ? ORDER BY ${order === 'score' ? 'score DESC, ' : ''}member DESC LIMIT ?`;
      const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all('a', 'b', 1);
      assert.deepEqual(
        steps.map(({ detail }) => detail),
        [`SEARCH entries USING ${index}`],
      );
    }
    db.close();
  });

  it('drops delivered receipts past their age, and nothing that is owed', async () => {
    const limits = { ...LIMITS, receiptsMaxAgeMs: 2 * DAY_MS };
    const store = openSqliteStore({ path: ':memory:', limits, now: () => NOW });
    const [old, owed, recent] = [
      receiptId(NOW - 2 * DAY_MS - 1),
      receiptId(NOW - 9 * DAY_MS),
      receiptId(NOW - 2 * DAY_MS),
    ];
    await store.receipts.write([old, recent].map((id) => receipt(id, 'aged', { delivered: true })));
    await store.receipts.write([receipt(owed, 'aged')]);
    assert.equal(await store.tidy(), false);
    const page = await store.receipts.page({ limit: 5 });
    assert.deepEqual(idsIn(page), [recent, owed]);
    assert.deepEqual(store.receipts.trimmed(), { length: 0, age: 1 });
    await store.close();
  });

  it('gives space back in short steps', async () => {
    const path = join(directory, 'space.db');
    const limits = { eventsMaxLength: 100, receiptsMaxLength: 1_000_000, receiptsMaxAgeMs: DAY_MS };
    const store = openSqliteStore({ path, limits, now: () => NOW });
    const ids = Array.from({ length: 2_500 }, (_, i) => receiptId(NOW - 10 * DAY_MS + i));
    await store.receipts.write(ids.map((id) => receipt(id, 'x'.repeat(4_000), { delivered: true })));
    let steps = 1;
    while (await store.tidy()) steps += 1;
    assert.ok(steps > 10, `${steps} steps`);
    await store.close();
    assert.deepEqual(await countsOf(path), { done: 0, owed: 0, uncertain: 0 });
    // 10 MB were in it; 4 MB stay for the next receipts.
    assert.ok(statSync(path).size < 6_000_000, `${statSync(path).size} bytes are left`);
  });
});

async function countsOf(path: string) {
  const store = openSqliteStore({ path, limits: LIMITS });
  const counts = await store.receipts.counts();
  await store.close();
  return counts;
}
