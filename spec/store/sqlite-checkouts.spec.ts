import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { checkoutClaim, nextOf } from './checkout-samples.ts';
import { temporaryDirectory } from './temporary.ts';

const LIMITS = { eventsMaxLength: 1, receiptsMaxLength: 1 };
const directory = temporaryDirectory();

describe('the rows of checkout claims in SQLite', () => {
  it('outlive the process, and are deleted along with a claim when they are over', async () => {
    let now = 1_800_000_000_000;
    const path = join(directory, 'store.db');
    const open = () => openSqliteStore({ path, limits: LIMITS, now: () => now });
    const store = open();
    const brief = { leaseMs: 1, keepMs: 1 };
    for (let i = 0; i < 30; i += 1) await store.checkouts.claim(checkoutClaim(brief));
    const stays = checkoutClaim();
    now += 2;
    for (const one of [stays, checkoutClaim(brief), checkoutClaim(brief), checkoutClaim(brief)])
      assert.equal((await store.checkouts.claim(one)).kind, 'granted');
    await store.close();
    const db = new DatabaseSync(path);
    const documents = db.prepare("SELECT count(*) AS n FROM documents WHERE key LIKE 'acp:%'");
    assert.equal(documents.get()?.['n'], 8);
    db.close();
    const again = open();
    assert.equal((await again.checkouts.claim(nextOf(stays))).kind, 'in_flight');
    await again.close();
  });
});
