import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, it } from 'node:test';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { checkoutClaim, FIRST, holdOf } from './checkout-samples.ts';

const directory = mkdtempSync(join(tmpdir(), 'acg-checkout-rows-'));
after(() => rmSync(directory, { recursive: true, force: true }));

describe('the rows of checkout claims in SQLite', () => {
  it('name the fencing token and the end of the lease as every release does, and are read so', async () => {
    const path = join(directory, 'store.db');
    const store = openSqliteStore({ path, limits: { eventsMaxLength: 1, receiptsMaxLength: 1 } });
    const claim = checkoutClaim();
    assert.deepEqual(await store.checkouts.claim(claim), FIRST);
    const db = new DatabaseSync(path, { readOnly: true });
    for (const table of ['checkouts', 'checkout_locks']) {
      const record = JSON.parse(String(db.prepare(`SELECT record FROM ${table}`).get()?.['record']));
      assert.equal(record.token, 1, table);
      assert.equal(record.leaseEnd - record.began, claim.leaseMs, table);
      assert.ok(!('fence' in record || 'leaseUntil' in record), table);
    }
    db.close();
    const answer = { status: 200, sealed: '', keepMs: 1_000 };
    assert.equal(await store.checkouts.finish(holdOf(claim, 2), answer), false);
    assert.equal(await store.checkouts.finish(holdOf(claim), answer), true);
    await store.close();
  });
});
