import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { LedgerCorruption } from '../../src/payments/ledger/invariants.ts';
import { RECORD_RETENTION_MS } from '../../src/payments/ledger/transitions.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { event, holder, keptAnswer, move, receipt, recordIn, sha256, terms } from '../payments/ledger/samples.ts';
import { temporaryDirectory } from './temporary.ts';

const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 100 };
const NOW = 1_800_000_000_000;
const directory = temporaryDirectory();
let files = 0;

function file(): string {
  files += 1;
  return join(directory, `${files}`, 'below', 'gateway.db');
}

function open(path: string, now?: () => number): Store {
  return openSqliteStore({ path, limits: LIMITS, ...(now === undefined ? {} : { now }) });
}

/** A process that has a database open, once it said so. */
const HOLDS = `
const db = new (require('node:sqlite').DatabaseSync)(process.argv[1]);
db.exec('SELECT * FROM documents');
console.log('open');
setInterval(() => db, 1_000);
`;

async function saidAtOpening(path: string): Promise<readonly unknown[]> {
  const said: unknown[] = [];
  const store = openSqliteStore({ path, limits: LIMITS, log: { warn: (...line) => said.push(line) } });
  await store.check();
  await store.close();
  return said;
}

describe('the embedded store', () => {
  it('creates its directory, and a file that only its owner can read', async () => {
    const path = file();
    const store = open(path);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    await store.close();
  });

  it('remembers after it was closed', async () => {
    const path = file();
    const wanted = terms();
    const first = open(path);
    const reservation = await first.ledger.reserve({ terms: wanted, owner: 'buyer', leaseMs: 60_000 });
    await first.ledger.advance(move(recordIn(reservation), 'settling', { events: [event('payment.verified', 'r')] }));
    await first.receipts.write([receipt(wanted.receiptId, 'r')]);
    await first.close();
    const second = open(path);
    assert.equal((await second.ledger.read(wanted.payId))?.state, 'settling');
    assert.equal((await second.feed.page({ limit: 5 })).events.length, 1);
    assert.equal((await second.receipts.page({ limit: 5 })).receipts.length, 1);
    await second.close();
  });

  it('tells its log when another process has the file open, and no longer once that is killed', async () => {
    const path = file();
    await open(path).close();
    const other = spawn(process.execPath, ['--eval', HOLDS, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    leash(other);
    await once(other.stdout, 'data');
    assert.deepEqual(await saidAtOpening(path), [
      [{ path }, 'another process has this database open; several gateways need storage.redis'],
    ]);
    other.kill('SIGKILL');
    await once(other, 'exit');
    assert.deepEqual(await saidAtOpening(path), []);
  });

  for (const [what, sql, message] of [
    [
      'of a newer release',
      'PRAGMA user_version = 99',
      /schema version 99, and this release reads 3 alone: .*move the file away/,
    ],
    ['of an older one', 'PRAGMA user_version = 0', /schema version 0, and this release reads 3 alone/],
    ['of another application', 'PRAGMA application_id = 7', /another application/],
  ] as const)
    it(`refuses a database ${what}, and leaves it alone`, async () => {
      const path = file();
      await open(path).close();
      const db = new DatabaseSync(path);
      db.exec(sql);
      db.close();
      assert.throws(() => open(path), message);
      assert.throws(() => open(path), message);
    });

  it('forgets a record 25 hours after its last change, and deletes it with the next write', async () => {
    const path = file();
    let now = NOW;
    const store = open(path, () => now);
    const old = terms('old', { validBefore: NOW / 1_000 });
    await store.ledger.reserve({ terms: old, owner: 'buyer', leaseMs: 0 });
    now = NOW + RECORD_RETENTION_MS - 1;
    assert.equal((await store.ledger.read(old.payId))?.state, 'reserved');
    now += 1;
    assert.equal(await store.ledger.read(old.payId), undefined);
    await store.ledger.reserve({ terms: terms('new'), owner: 'buyer', leaseMs: 0 });
    await store.close();
    const db = new DatabaseSync(path);
    const payments = db.prepare("SELECT count(*) AS n FROM documents WHERE key LIKE 'pay:%' OR key LIKE 'buy:%'");
    assert.equal(payments.get()?.['n'], 2);
    db.close();
  });

  it('forgets a kept answer when its time is over, and deletes it with a later write', async () => {
    const path = file();
    let now = NOW;
    const store = open(path, () => now);
    const record = recordIn(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: 0 }));
    const keeping = { answer: keptAnswer(), forMs: 1_000 };
    await store.ledger.note({ ...holder(record), leaseMs: 0, keeping });
    now = NOW + 999;
    assert.ok(await store.ledger.kept(record.payId));
    now += 1;
    assert.equal(await store.ledger.kept(record.payId), undefined);
    await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: 0 });
    await store.close();
    const db = new DatabaseSync(path);
    assert.equal(db.prepare("SELECT count(*) AS n FROM documents WHERE key LIKE 'res:%'").get()?.['n'], 0);
    db.close();
  });

  it('lists what is due to the millisecond, past what it cannot read', async () => {
    const path = file();
    let now = NOW;
    const store = open(path, () => now);
    const leases = [30, 10, 20];
    for (const leaseMs of leases)
      await store.ledger.reserve({ terms: terms(`due ${leaseMs}`), owner: 'buyer', leaseMs });
    const due = async (limit = 10) => (await store.ledger.due(limit)).map(({ dueAt }) => dueAt - NOW);
    now = NOW + 9;
    assert.deepEqual(await due(), []);
    now = NOW + 10;
    assert.deepEqual(await due(), [10]);
    now = NOW + 30;
    assert.deepEqual(await due(), [10, 20, 30]);
    const db = new DatabaseSync(path);
    db.prepare("UPDATE documents SET value = '{}' WHERE key = ?").run(`pay:${sha256('due 10')}`);
    db.close();
    assert.deepEqual(await due(1), [20]);
    assert.deepEqual(await due(), [20, 30]);
    assert.deepEqual(await due(0), []);
    await assert.rejects(store.ledger.read(sha256('due 10')), LedgerCorruption);
    await store.close();
  });

  it('gives growing positions to events while its clock goes back', async () => {
    let now = NOW;
    const store = open(':memory:', () => now);
    for (const [name, at] of [
      ['a', NOW],
      ['b', NOW],
      ['c', NOW - 5_000],
      ['d', NOW + 1],
    ] as const) {
      now = at;
      await store.feed.append([event('resource.requested', name)]);
    }
    const { events } = await store.feed.page({ limit: 10 });
    assert.deepEqual(
      events.map(({ id, requestId }) => `${requestId} ${id}`),
      [`d evt_${NOW + 1}-0`, `c evt_${NOW}-2`, `b evt_${NOW}-1`, `a evt_${NOW}-0`],
    );
    await store.close();
  });

  it('is unwritable while another process holds the file, and callers get a StoreError', async () => {
    const path = file();
    const store = open(path);
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    assert.partialDeepStrictEqual(await store.check(), { status: 'unwritable' });
    await assert.rejects(store.feed.append([event('resource.requested', 'r')]), StoreError);
    other.exec('ROLLBACK');
    other.close();
    assert.deepEqual(await store.check(), { status: 'ok' });
    await store.close();
  });

  it('answers a StoreError after it was closed, and closes twice', async () => {
    const store = open(':memory:');
    await store.close();
    await store.close();
    await assert.rejects(store.ledger.read(terms().payId), StoreError);
  });
});
