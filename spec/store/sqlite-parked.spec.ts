import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, it } from 'node:test';
import { MAX_CLAIMED_CALLS, MAX_PARKED_CALLS } from '../../src/payments/parked-calls.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';

const LIMITS = { eventsMaxLength: 10, receiptsMaxLength: 10 };
const NOW = 1_800_000_000_000;
const SECOND_MS = 1_000;
/** More than one command deletes. */
const MANY = 50;
const directory = mkdtempSync(join(tmpdir(), 'acg-parked-'));

after(() => rmSync(directory, { recursive: true, force: true }));

describe('parked calls in SQLite', () => {
  it('wait to the last millisecond, and then are no more', async () => {
    let now = NOW;
    const { parked, close } = openSqliteStore({ path: ':memory:', limits: LIMITS, now: () => now });
    for (const task of ['one', 'two']) await parked.park(task, 'call', SECOND_MS);
    now = NOW + SECOND_MS - 1;
    assert.equal((await parked.claim('one', 'buyer', SECOND_MS)).kind, 'yours');
    now += 1;
    assert.equal((await parked.claim('two', 'buyer', SECOND_MS)).kind, 'none');
    await close();
  });

  it('are claimed to the last millisecond from the first claim, and then are no more', async () => {
    let now = NOW;
    const { parked, close } = openSqliteStore({ path: ':memory:', limits: LIMITS, now: () => now });
    await parked.park('task', 'call', 1);
    await parked.claim('task', 'buyer', SECOND_MS);
    now = NOW + SECOND_MS - 1;
    assert.equal((await parked.claim('task', 'other', SECOND_MS)).kind, 'taken');
    assert.equal((await parked.claim('task', 'buyer', SECOND_MS)).kind, 'yours');
    now += 1;
    for (const claimant of ['buyer', 'other'])
      assert.equal((await parked.claim('task', claimant, SECOND_MS)).kind, 'none');
    await close();
  });

  it('wait to the last millisecond from the first release', async () => {
    let now = NOW;
    const { parked, close } = openSqliteStore({ path: ':memory:', limits: LIMITS, now: () => now });
    await parked.park('task', 'call', 1);
    await parked.claim('task', 'buyer', 1);
    assert.equal(await parked.release('task', 'buyer', SECOND_MS), true);
    now = NOW + SECOND_MS - 1;
    assert.equal(await parked.release('task', 'buyer', SECOND_MS), true);
    now += 1;
    assert.equal(await parked.release('task', 'buyer', SECOND_MS), false);
    await close();
  });

  it('are refused when as many are claimed as may, until one of those is over', async () => {
    let now = NOW;
    const path = join(directory, 'claimed.db');
    const { parked, close } = openSqliteStore({ path, limits: LIMITS, now: () => now });
    const db = new DatabaseSync(path);
    const insert = db.prepare("INSERT INTO parked VALUES (?, ?, 'buyer', 'call')");
    for (let i = 0; i < MAX_CLAIMED_CALLS; i += 1) insert.run(`claimed-${i}`, NOW + (i === 0 ? 1 : SECOND_MS));
    db.close();
    assert.equal(await parked.park('one-more', 'call', SECOND_MS), false);
    now += 1;
    assert.equal(await parked.park('one-more', 'call', SECOND_MS), true);
    await close();
  });

  it('are over together and make room at once, also those that are not deleted yet', async () => {
    let now = NOW;
    const { parked, close } = openSqliteStore({ path: ':memory:', limits: LIMITS, now: () => now });
    for (let i = 0; i < MANY; i += 1) {
      await parked.park(`claimed-${i}`, 'call', SECOND_MS);
      await parked.claim(`claimed-${i}`, 'buyer', SECOND_MS - 1);
    }
    for (let i = 0; i < MAX_PARKED_CALLS; i += 1) await parked.park(`waiting-${i}`, 'call', SECOND_MS);
    assert.equal(await parked.park('next', 'call', SECOND_MS), false);
    now = NOW + SECOND_MS;
    assert.equal(await parked.park('next', 'call', SECOND_MS), true);
    for (const over of [`claimed-${MANY - 1}`, `waiting-${MAX_PARKED_CALLS - 1}`])
      assert.equal((await parked.claim(over, 'buyer', SECOND_MS)).kind, 'none');
    await close();
  });

  for (const command of ['park', 'claim', 'release'] as const)
    it(`are deleted with a later ${command} when their time is over, waiting or claimed`, async () => {
      const path = join(directory, `${command}.db`);
      let now = NOW;
      const { parked, close } = openSqliteStore({ path, limits: LIMITS, now: () => now });
      for (const task of ['waiting', 'claimed', 'kept']) await parked.park(task, 'call', SECOND_MS);
      await parked.claim('claimed', 'buyer', SECOND_MS);
      await parked.claim('kept', 'buyer', SECOND_MS + 1);
      now = NOW + SECOND_MS;
      await {
        park: () => parked.park('next', 'call', SECOND_MS),
        claim: () => parked.claim('next', 'buyer', SECOND_MS),
        release: () => parked.release('next', 'buyer', SECOND_MS),
      }[command]();
      await close();
      assert.deepEqual(
        namesIn(path).filter((name) => name !== 'next'),
        ['kept'],
      );
    });
});

function namesIn(path: string): readonly unknown[] {
  const db = new DatabaseSync(path);
  const rows = db.prepare('SELECT name FROM parked').all();
  db.close();
  return rows.map(({ name }) => name);
}
