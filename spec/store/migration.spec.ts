import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import type { PaymentRecord, PaymentState } from '../../src/payments/ledger/ledger.ts';
import { isFinal, TRANSITIONS } from '../../src/payments/ledger/transitions.ts';
import { receiptId } from '../../src/receipts/receipt.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { MIGRATIONS, migrate } from '../../src/store/sqlite/schema.ts';
import { holder, keptAnswer, sha256, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { checkoutClaim, nextOf } from './checkout-samples.ts';
import { temporaryDirectory } from './temporary.ts';

const NOW = 1_800_000_000_000;
const LIMITS = { eventsMaxLength: 10, receiptsMaxLength: 10 };
/** Those that version 1 knew. */
const STATES = (Object.keys(TRANSITIONS) as PaymentState[]).filter(
  (state) => !['worked', 'withdrawn', 'unresolved', 'refunding', 'refunded'].includes(state),
);
/** Digests of released steps: a step that changes later would leave two kinds of files. */
const RELEASED = ['165cbf827cef650b7e6a67115e4ae6e0bf2b783d898eca7b11f3f7a4294dfa10'];
const RECEIPT = receiptId(NOW);
const directory = temporaryDirectory();

/** A record as version 1 wrote it: without `dueAt` and `evidence`. */
function oldRecord(state: PaymentState) {
  const paid = !['reserved', 'settling', 'refused'].includes(state);
  return {
    ...terms(state, { validBefore: NOW / 1_000, receiptId: RECEIPT }),
    state,
    owner: 'buyer',
    fence: 3,
    leaseUntil: isFinal(state) ? 0 : NOW + 5,
    step: 'last',
    tries: 2,
    reservedAt: NOW - 10,
    changedAt: NOW - 5,
    ...(paid ? { transaction: TRANSACTION, settledAt: NOW - 6 } : {}),
  };
}

function oldFile(name: string): string {
  const path = join(directory, `${name}.db`);
  const db = new DatabaseSync(path);
  db.exec(MIGRATIONS[0] ?? assert.fail());
  db.exec(`PRAGMA application_id = ${0x41434731}; PRAGMA user_version = 1`);
  const insert = db.prepare('INSERT INTO payments (pay_id, expires_at, due_at, record) VALUES (?, ?, ?, ?)');
  for (const state of STATES) {
    const record = oldRecord(state);
    insert.run(record.payId, NOW + 1_000, isFinal(state) ? null : record.leaseUntil, JSON.stringify(record));
  }
  insert.run(sha256('damaged'), NOW + 1_000, NOW, 'no JSON');
  db.close();
  return path;
}

/** What the present version adds to each. */
function added(state: PaymentState): Partial<PaymentRecord> {
  if (state === 'refused') return { dueAt: 0, evidence: 'unsent', reason: 'settlement_refused' };
  const dueAt = isFinal(state) ? 0 : NOW + 5;
  return state === 'reserved' || state === 'settling' ? { dueAt } : { dueAt, evidence: 'claim' };
}

describe('a file of the last release', () => {
  it('opens, and its records are what they were, with what is known of them now', async () => {
    const store = openSqliteStore({ path: oldFile('records'), limits: LIMITS, now: () => NOW });
    for (const state of STATES)
      assert.deepEqual(await store.ledger.read(sha256(state)), { ...oldRecord(state), ...added(state) });
    await store.close();
  });

  it('is worked on: what is due is found, answers can be kept', async () => {
    let now = NOW;
    const store = openSqliteStore({ path: oldFile('work'), limits: LIMITS, now: () => now });
    const record = (await store.ledger.read(sha256('undelivered'))) ?? assert.fail();
    const keeping = { answer: keptAnswer(), forMs: 1_000 };
    assert.equal((await store.ledger.note({ ...holder(record), leaseMs: 10, keeping })).kind, 'done');
    assert.equal((await store.ledger.kept(record.payId))?.status, keeping.answer.status);
    assert.equal(await store.secrets.agree('name', 'first'), 'first');
    now = NOW + 5;
    const due = await store.ledger.due(10);
    assert.deepEqual(new Set(due.map(({ state }) => state)), new Set(['reserved', 'settling', 'settled']));
    await store.close();
  });

  it('remembers checkout operations, and drops what is over along with claims', async () => {
    let now = NOW;
    const path = oldFile('checkouts');
    const store = openSqliteStore({ path, limits: LIMITS, now: () => now });
    const brief = { leaseMs: 1, keepMs: 1 };
    for (let i = 0; i < 30; i += 1) await store.checkouts.claim(checkoutClaim(brief));
    const stays = checkoutClaim();
    now += 2;
    for (const one of [stays, checkoutClaim(brief)]) assert.equal((await store.checkouts.claim(one)).kind, 'granted');
    await store.close();
    const db = new DatabaseSync(path);
    for (const table of ['checkouts', 'checkout_locks'])
      assert.equal(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'], 2);
    db.close();
    const again = openSqliteStore({ path, limits: LIMITS, now: () => now });
    assert.equal((await again.checkouts.claim(nextOf(stays))).kind, 'in_flight');
    await again.close();
  });

  it('keeps its reason, when it had one', async () => {
    const path = oldFile('reason');
    const db = new DatabaseSync(path);
    const json = JSON.stringify({ ...oldRecord('refused'), reason: 'insufficient_funds' });
    db.prepare('UPDATE payments SET record = ? WHERE pay_id = ?').run(json, sha256('refused'));
    db.close();
    const store = openSqliteStore({ path, limits: LIMITS, now: () => NOW });
    assert.equal((await store.ledger.read(sha256('refused')))?.reason, 'insufficient_funds');
    await store.close();
  });

  it('is left as it was when the migration fails', () => {
    const path = oldFile('failing');
    const db = new DatabaseSync(path);
    db.exec('CREATE TABLE answers (in_the_way TEXT)');
    assert.throws(() => migrate(db), /answers/);
    assert.equal(db.prepare('PRAGMA user_version').get()?.['user_version'], 1);
    const { record } = db.prepare('SELECT record FROM payments WHERE pay_id = ?').get(sha256('settled')) ?? {};
    assert.deepEqual(JSON.parse(String(record)), oldRecord('settled'));
    db.close();
  });

  it('came from steps that have not changed since', () => {
    const digests = MIGRATIONS.slice(0, RELEASED.length).map((step) => sha256(step));
    assert.deepEqual(digests, RELEASED);
  });
});
