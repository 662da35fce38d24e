import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { LedgerCorruption } from '../../src/payments/ledger/table.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { MAX_GROUP, openDatabase } from '../../src/store/sqlite/database.ts';
import { temporaryDirectory } from './opened.ts';

const directory = temporaryDirectory();
let files = 0;

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
