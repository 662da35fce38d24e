import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register.ts';
import { LedgerCorruption, RECORD_RETENTION_MS } from '../../src/payments/ledger/table.ts';
import { receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { MAX_GROUP, openDatabase } from '../../src/store/sqlite/database.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { claimOf } from '../mandates/claims.ts';
import { event, move, receipt, recordIn, sha256, terms } from '../payments/ledger/samples.ts';
import { refused, reserveWith } from './contract-mandates.ts';
import { idsIn, temporaryDirectory } from './opened.ts';

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

const DAY_MS = 86_400_000;

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
      const details = steps.map(({ detail }) => detail);
      assert.deepEqual(details, [`SEARCH entries USING ${index}`]);
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

let path: string;

beforeEach(() => {
  files += 1;
  path = join(directory, `${files}.db`);
});

const openAt = (now = NOW): Store => openSqliteStore({ path, limits: LIMITS, now: () => now });
const used = async ({ ledger }: Store, claim: MandateClaim) => refused(await reserveWith(ledger, claim));
const aged = (age: number) => claimOf(undefined, { age });

describe('the epoch of a register in SQLite', () => {
  it('begins anew with a new file: what was used in one that was deleted is refused, free or paid', async () => {
    const store = openAt();
    const claim = aged(0);
    assert.equal(await used(store, claim), 'granted');
    await store.close();
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true });
    const fresh = openAt(NOW + 2_000);
    const later = { ...claim, age: 2 };
    assert.equal(await used(fresh, later), 'replayed');
    assert.deepEqual(await fresh.mandates.reserve('free', later), { kind: 'refused', reason: 'replayed' });
    assert.equal(await used(fresh, aged(0)), 'granted');
    await fresh.close();
  });
});

/** A database with a table of the test's own. */
function bed() {
  files += 1;
  const path = join(directory, `${files}.db`);
  const database = openDatabase(path, () => 7);
  const { db } = database;
  db.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE note (text TEXT, parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`);
  const insert = db.prepare('INSERT INTO note (text, parent) VALUES (?, ?)');
  const select = db.prepare('SELECT text FROM note ORDER BY rowid');
  const written = () => database.read(() => select.all().map(({ text }) => String(text)));
  const write = (text: string) =>
    database.write((now) => {
      insert.run(text, null);
      return `${text} at ${now}`;
    });
  const writeAndThrow = (text: string, thrown: Error) =>
    database.write(() => {
      insert.run(text, null);
      throw thrown;
    });
  /** Nothing is wrong with it before the commit. */
  const writeUncommittable = (text: string) => database.write(() => insert.run(text, 404));
  return { path, database, written, write, writeAndThrow, writeUncommittable, commits: () => commitsIn(path) };
}

/**
 * Commits in the write-ahead log: frames that carry the size of the database
 * (sqlite.org/fileformat2, 4.1).
 */
function commitsIn(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const pageBytes = log.readUInt32BE(8);
  const salt = log.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + 24 + pageBytes <= log.length; at += 24 + pageBytes) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break;
    if (log.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

describe('a commit in SQLite', () => {
  it('is one for all works of one turn of the event loop, each answered for itself', async () => {
    const { database, write, written, commits } = bed();
    const before = commits();
    const later = Promise.resolve().then(() => write('microtask'));
    const ticked = new Promise<string>((resolve) => process.nextTick(() => resolve(write('tick'))));
    assert.deepEqual(await Promise.all([write('a'), write('b'), later, ticked]), [
      'a at 7',
      'b at 7',
      'microtask at 7',
      'tick at 7',
    ]);
    assert.equal(commits() - before, 1);
    assert.equal((await written()).length, 4);
    database.close();
  });

  it('is shared by works of several connections that are read in one turn', async (t) => {
    const { path, database, write, commits } = bed();
    const accepted: Socket[] = [];
    const server = createServer((socket) => {
      accepted.push(socket);
      socket.on('data', () => void write('x').then((text) => socket.end(text)));
    });
    t.after(() => {
      for (const socket of accepted) socket.destroy();
      server.close();
    });
    server.listen(`${path}.sock`);
    await once(server, 'listening');
    const sockets = [1, 2, 3].map(() => connect(`${path}.sock`));
    while (accepted.length < sockets.length) await once(server, 'connection');
    const before = commits();
    // The kernel has all of them before the server reads the first.
    for (const socket of sockets) socket.write('go');
    const answers = await Promise.all(sockets.map(async (socket) => String((await once(socket, 'data'))[0])));
    assert.deepEqual(answers, ['x at 7', 'x at 7', 'x at 7']);
    assert.equal(commits() - before, 1);
    for (const socket of sockets) socket.destroy();
    database.close();
  });

  it(`holds at most ${MAX_GROUP} works`, async () => {
    const { database, write, written, commits } = bed();
    const before = commits();
    const texts = Array.from({ length: MAX_GROUP + 1 }, (_, i) => `${i}`);
    await Promise.all(texts.slice(1).map(write));
    assert.equal(commits() - before, 1);
    await Promise.all(texts.map(write));
    assert.equal(commits() - before, 3);
    assert.deepEqual(await written(), [...texts.slice(1), ...texts]);
    database.close();
  });

  it('syncs the log, for money must survive a power cut', () => {
    const { database } = bed();
    assert.equal(database.db.prepare('PRAGMA synchronous').get()?.['synchronous'], 2);
    database.close();
  });
});

describe('a work in a shared commit', () => {
  it('that throws is undone alone and rejects alone, with its own error when it is a bug or damage', async () => {
    const { database, write, writeAndThrow, written } = bed();
    const outcomes = await Promise.allSettled([
      write('a'),
      writeAndThrow('b', new LedgerCorruption('broken')),
      writeAndThrow('c', new Error('engine')),
      write('d'),
    ]);
    const statuses = outcomes.map(({ status }) => status);
    assert.deepEqual(statuses, ['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    assert.ok(reason(outcomes[1]) instanceof LedgerCorruption);
    assert.ok(reason(outcomes[2]) instanceof StoreError);
    assert.deepEqual(await written(), ['a', 'd']);
    database.close();
  });

  it('is not answered as done when the commit fails, and nothing of the group is left', async () => {
    const { database, write, writeUncommittable, written } = bed();
    const outcomes = await Promise.allSettled([write('a'), writeUncommittable('b'), write('c')]);
    for (const outcome of outcomes) assert.ok(reason(outcome) instanceof StoreError);
    assert.deepEqual(await written(), []);
    assert.equal(await write('after'), 'after at 7');
    database.close();
  });

  it('is not answered as done when another process holds the file; all wait for it together', async () => {
    const { path, database, write, written } = bed();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const began = performance.now();
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => write('a')));
    // One wait of half a second, not eight.
    assert.ok(performance.now() - began < 2_000);
    for (const outcome of outcomes) assert.ok(reason(outcome) instanceof StoreError);
    other.close();
    assert.deepEqual(await written(), []);
    assert.equal(await write('after'), 'after at 7');
    database.close();
  });

  it('is there exactly when it was answered as done, also when the disk is full', async () => {
    const { database, write, written } = bed();
    const pages = Number(database.db.prepare('PRAGMA page_count').get()?.['page_count']);
    database.db.exec(`PRAGMA max_page_count = ${pages + 1}`);
    const texts = ['a', 'x'.repeat(100_000), 'b', 'y'.repeat(200_000), 'c'];
    const outcomes = await Promise.allSettled(texts.map(write));
    const rejected = outcomes.filter(({ status }) => status === 'rejected');
    assert.ok(rejected.length > 0);
    for (const outcome of rejected)
      assert.match(String((reason(outcome) as StoreError).cause), /full \(SQLite result code 13\)/);
    assert.deepEqual(
      await written(),
      texts.filter((_, i) => outcomes[i]?.status === 'fulfilled'),
    );
    database.db.exec('PRAGMA max_page_count = 1000000');
    assert.equal(await write('after'), 'after at 7');
    database.close();
  });

  it('is seen by a read after it was answered, and by none before', async () => {
    const { database, write, writeAndThrow, written } = bed();
    const asked = write('a');
    const failed = assert.rejects(writeAndThrow('b', new Error('engine')));
    assert.deepEqual(await written(), []);
    await asked;
    assert.deepEqual(await written(), ['a']);
    await failed;
    database.close();
  });

  it('is committed and answered when the database is closed before its turn', async () => {
    const { path, database, write } = bed();
    const asked = write('a');
    database.close();
    assert.equal(await asked, 'a at 7');
    await assert.rejects(write('late'), StoreError);
    const db = new DatabaseSync(path);
    assert.equal(db.prepare('SELECT count(*) AS n FROM note').get()?.['n'], 1);
    db.close();
  });
});

function reason(outcome: PromiseSettledResult<unknown> | undefined): unknown {
  return outcome?.status === 'rejected' ? outcome.reason : undefined;
}
