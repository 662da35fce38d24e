import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { MAX_PARKED_CALLS, MAX_PARKED_LENGTH } from '../../src/payments/parked-calls.ts';
import { StoreError } from '../../src/store/store.ts';
import { clockOf, clockPast, type OpenStore, opened } from './opened.ts';

/** Longer than any test lasts, milliseconds. */
const LONG_MS = 600_000;
const BATCH = 100;

/** What becomes of calls that wait for their payment. */
export function parkedContract(name: string, open: OpenStore): void {
  describe(`${name}: parked calls`, () => {
    const { store } = opened(open);
    const parked = async (call: string, forMs = LONG_MS): Promise<string> => {
      const task = randomUUID();
      await store().parked.park(task, call, forMs);
      return task;
    };

    it('are taken once, as they were parked', async () => {
      const call = '{"text":"Zürich\\n"}\n\0\u{1f4b6} ';
      const [task, empty] = [await parked(call), await parked('')];
      assert.equal(await store().parked.take(task), call);
      assert.equal(await store().parked.take(task), undefined);
      assert.equal(await store().parked.take(empty), '');
      assert.equal(await store().parked.take(randomUUID()), undefined);
    });

    it('go to one of fifty that ask at once', async () => {
      const task = await parked('call');
      const answers = await Promise.all(Array.from({ length: 50 }, () => store().parked.take(task)));
      assert.deepEqual(
        answers.filter((answer) => answer !== undefined),
        ['call'],
      );
    });

    it('are gone when their time is over', async () => {
      const [brief, none, long] = [await parked('brief', 1), await parked('none', 0), await parked('long')];
      await clockPast(store, (await clockOf(store())) + 1);
      for (const over of [brief, none]) assert.equal(await store().parked.take(over), undefined);
      assert.equal(await store().parked.take(long), 'long');
    });

    it('are replaced, call and time, by a later one under the same name', async () => {
      const task = await parked('first', 1);
      await store().parked.park(task, 'second', LONG_MS);
      await clockPast(store, (await clockOf(store())) + 1);
      assert.equal(await store().parked.take(task), 'second');
    });

    it('can be parked again by who took them', async () => {
      const task = await parked('call');
      await store().parked.take(task);
      await store().parked.park(task, 'again', LONG_MS);
      assert.equal(await store().parked.take(task), 'again');
    });

    it('are not seen by another merchant', async () => {
      const task = await parked('call');
      const other = await open(randomUUID());
      assert.equal(await other.parked.take(task), undefined);
      await other.close();
      assert.equal(await store().parked.take(task), 'call');
    });

    it('may be as long as they may be, and longer ones are a bug of the caller, as are odd names and times', async () => {
      const longest = 'é'.repeat(MAX_PARKED_LENGTH);
      assert.equal(await store().parked.take(await parked(longest)), longest);
      const task = randomUUID();
      for (const [odd, call, forMs] of [
        [task, `${longest}x`, LONG_MS],
        [task, 'call', -1],
        [task, 'call', 0.5],
        ['', 'call', LONG_MS],
        ['a b', 'call', LONG_MS],
        ['n'.repeat(257), 'call', LONG_MS],
      ] as const)
        await assert.rejects(store().parked.park(odd, call, forMs), RangeError);
      assert.equal(await store().parked.take(task), undefined);
    });

    it('are not found under what cannot be a name: who asks may say anything', async () => {
      for (const odd of ['', '\ud800', 'a\0', `${await parked('call')}\n`, 'n'.repeat(100_000)])
        assert.equal(await store().parked.take(odd), undefined);
    });

    it('are refused with a StoreError while the store is away', async () => {
      const shut = await open(randomUUID());
      await shut.close();
      await assert.rejects(shut.parked.park(randomUUID(), 'call', LONG_MS), StoreError);
      await assert.rejects(shut.parked.take(randomUUID()), StoreError);
    });
  });

  describe(`${name}: parked calls up to their bound`, () => {
    const { store } = opened(open);
    it(`are ${MAX_PARKED_CALLS}; for one more the one that ends first gives way, for one that is replaced none does`, async () => {
      const { park, take } = store().parked;
      const tasks = Array.from({ length: MAX_PARKED_CALLS }, (_, i) => `task-${i}`);
      for (let i = 0; i < tasks.length; i += BATCH)
        await Promise.all(tasks.slice(i, i + BATCH).map((task, k) => park(task, task, LONG_MS + i + k)));
      await park('task-500', 'replaced', LONG_MS + 500);
      assert.equal(await take('task-0'), 'task-0');
      await park('task-0', 'again', LONG_MS / 2);
      await park('one-more', 'one more', LONG_MS + MAX_PARKED_CALLS);
      assert.equal(await take('task-0'), undefined);
      for (const task of ['task-1', 'task-999']) assert.equal(await take(task), task);
      assert.deepEqual([await take('task-500'), await take('one-more')], ['replaced', 'one more']);
    });
  });
}
