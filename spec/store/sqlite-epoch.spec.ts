import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { claimOf, useOf } from '../mandates/register/register-map.ts';
import { refused, reserveWith } from './contract-mandates.ts';
import { temporaryDirectory } from './temporary.ts';

const NOW = 1_800_000_000_000;
const LIMITS = { eventsMaxLength: 10, receiptsMaxLength: 10 };
const directory = temporaryDirectory();
let files = 0;
let path: string;

beforeEach(() => {
  files += 1;
  path = join(directory, `${files}.db`);
});

const open = (now = NOW): Store => openSqliteStore({ path, limits: LIMITS, now: () => now });
const used = async ({ ledger }: Store, claim: MandateClaim) => refused(await reserveWith(ledger, claim));
const aged = (age: number) => claimOf(undefined, { age });

describe('the epoch of a register in SQLite', () => {
  it('begins a second before the file and stays: checkouts from before are refused, open mandates are not', async () => {
    const store = open();
    const openMandate = [{ ...useOf('o', {}), age: 3_600 }];
    assert.equal(await used(store, claimOf(undefined, { age: 0, open: openMandate })), 'granted');
    assert.equal(await used(store, aged(1.001)), 'replayed');
    await store.close();
    const later = open(NOW + 5_000);
    assert.equal(await used(later, aged(6)), 'granted');
    assert.equal(await used(later, aged(6.001)), 'replayed');
    await later.close();
  });

  it('begins anew with a new file: what was used in one that was deleted is refused, free or paid', async () => {
    const store = open();
    const claim = aged(0);
    assert.equal(await used(store, claim), 'granted');
    await store.close();
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true });
    const fresh = open(NOW + 2_000);
    const later = { ...claim, age: 2 };
    assert.equal(await used(fresh, later), 'replayed');
    assert.deepEqual(await fresh.mandates.reserve('free', later), { kind: 'refused', reason: 'replayed' });
    assert.equal(await used(fresh, aged(0)), 'granted');
    await fresh.close();
  });

  it('is found emptied under an open store: what was made by then is refused', async () => {
    const store = open();
    await store.check();
    const db = new DatabaseSync(path);
    db.exec("DELETE FROM documents WHERE key = 'ap2:epoch'");
    db.close();
    assert.equal(await used(store, aged(0)), 'replayed');
    assert.deepEqual(await store.mandates.reserve('free', aged(0.001)), { kind: 'refused', reason: 'replayed' });
    await store.close();
    const later = open(NOW + 1_000);
    assert.equal(
      await used(later, claimOf(undefined, { age: 0, open: [{ ...useOf('o'), age: 2 }] })),
      'open_mandate_spent',
    );
    assert.equal(await used(later, aged(0)), 'granted');
    await later.close();
  });
});
