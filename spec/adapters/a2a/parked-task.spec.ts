import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  keyIdOf,
  MAX_SEALED_BYTES,
  openTask,
  parkedTasks,
  sealTask,
  taskKey,
  WAITS_MS,
} from '../../../src/adapters/a2a/parked-task.ts';
import type { TaskClaims } from '../../../src/payments/settlement/task-claims.ts';

const CALL = { contextId: 'c', resourceId: 'market_report', input: { city: 'Berlin', nested: { list: [1, 'ü'] } } };
const KEY = taskKey('a secret that processes share');
const NOW = 1_800_000_000_000;
const sealed = (call = CALL, until = NOW + 1_000): string => sealTask(call, until, KEY) ?? assert.fail('too large');
const NO_CLAIMS: TaskClaims = {
  holder: async () => undefined,
  claim: async () => true,
  end: async () => undefined,
  decline: async () => true,
};

describe('the id of a parked task', () => {
  it('opens to its call with its key, and with no other', () => {
    const id = sealed();
    assert.match(id, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual(openTask(id, NOW, KEY)?.call, CALL);
    assert.equal(openTask(id, NOW, taskKey('another secret')), undefined);
    assert.ok(!Buffer.from(id, 'base64url').toString('latin1').includes('Berlin'));
    assert.ok(keyIdOf(id)?.equals(KEY.id));
  });

  it('differs each time, and so does the name of the task', () => {
    const ids = Array.from({ length: 50 }, () => sealed());
    assert.equal(new Set(ids).size, 50);
    assert.equal(new Set(ids.map((id) => openTask(id, NOW, KEY)?.name)).size, 50);
    assert.equal(openTask(ids[0] ?? '', NOW, KEY)?.name, openTask(ids[0] ?? '', NOW, KEY)?.name);
  });

  it('is valid to the last millisecond of its time', () => {
    const id = sealed(CALL, NOW);
    assert.notEqual(openTask(id, NOW - 1, KEY), undefined);
    assert.equal(openTask(id, NOW, KEY), undefined);
  });

  it('does not open with one bit changed', () => {
    const bytes = Buffer.from(sealed(), 'base64url');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.equal(openTask(changed.toString('base64url'), NOW, KEY), undefined, `byte ${at}`);
    }
  });

  it('has one spelling', () => {
    // One of three lengths leaves unused bits in the last character.
    const id = Array.from({ length: 3 }, (_, n) => sealed({ ...CALL, contextId: 'c'.repeat(n + 1) })).find(
      (one) => one.length % 4 !== 0,
    );
    assert.ok(id !== undefined);
    const last = String.fromCharCode(id.charCodeAt(id.length - 1) + 1);
    for (const other of [`${id}=`, `${id}==`, `${id} `, `${id}A`, id.slice(0, -1), `${id.slice(0, -1)}${last}`, ''])
      assert.equal(openTask(other, NOW, KEY), undefined, other);
    assert.equal(openTask('x'.repeat(100_000), NOW, KEY), undefined);
  });

  it('is bounded, and a larger call has none', () => {
    const frame = JSON.stringify([NOW, CALL.contextId, CALL.resourceId, { text: '' }]);
    const text = 'a'.repeat(MAX_SEALED_BYTES - frame.length);
    const largest = sealTask({ ...CALL, input: { text } }, NOW, KEY);
    assert.ok(largest !== undefined && largest.length <= 5_600, `${largest?.length}`);
    assert.equal(sealTask({ ...CALL, input: { text: `${text}a` } }, NOW, KEY), undefined);
  });
});

describe('the secret under which ids are sealed', () => {
  /** A store that several processes share. */
  const shared = () => {
    const values = new Map<string, string>();
    let away = false;
    return {
      values,
      fail: (now: boolean) => {
        away = now;
      },
      agree: async (name: string, candidate: string) => {
        if (away) throw new Error('away');
        if (!values.has(name)) values.set(name, candidate);
        return values.get(name) ?? candidate;
      },
    };
  };

  it('is one for all processes, and a task of one is found by the others', async () => {
    const store = shared();
    const [one, other] = [parkedTasks(NO_CLAIMS, store), parkedTasks(NO_CLAIMS, store)];
    const id = (await one.park(CALL)) ?? assert.fail('not parked');
    assert.deepEqual((await other.find(id))?.call, CALL);
    assert.equal(store.values.size, 1);
  });

  it('that a store lost is restored, or agreed on again', async () => {
    let now = NOW;
    const store = shared();
    const [one, other] = [parkedTasks(NO_CLAIMS, store, () => now), parkedTasks(NO_CLAIMS, store, () => now)];
    await one.park(CALL);
    await other.park(CALL);
    store.values.clear();
    now += 60_000;
    const id = (await one.park(CALL)) ?? assert.fail('not parked');
    assert.deepEqual((await other.find(id))?.call, CALL);
    // Another process restores a secret of its own first.
    store.values.clear();
    const third = parkedTasks(NO_CLAIMS, store, () => now);
    const fresh = (await third.park(CALL)) ?? assert.fail('not parked');
    now += 2_000;
    assert.deepEqual((await one.find(fresh))?.call, CALL, 'the secret of an unknown key is agreed on again');
  });

  it('stays valid while the store is away; a process that never reached it parks nothing', async () => {
    let now = NOW;
    const store = shared();
    const [one, late] = [parkedTasks(NO_CLAIMS, store, () => now), parkedTasks(NO_CLAIMS, store, () => now)];
    await one.park(CALL);
    store.fail(true);
    now += 60_000;
    assert.notEqual(await one.park(CALL), undefined);
    assert.equal(await late.park(CALL), undefined);
  });

  it('opens nothing after the time of a task', async () => {
    let now = NOW;
    const tasks = parkedTasks(NO_CLAIMS, shared(), () => now);
    const id = (await tasks.park(CALL)) ?? assert.fail('not parked');
    now += WAITS_MS - 1;
    assert.notEqual(await tasks.find(id), undefined);
    now += 1;
    assert.equal(await tasks.find(id), undefined);
  });
});
