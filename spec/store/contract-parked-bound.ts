import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_PARKED_CALLS, type ParkedCalls } from '../../src/payments/parked-calls.ts';
import { clockOf, clockPast, type OpenStore, opened } from './opened.ts';

/** Longer than any test lasts, milliseconds. */
const LONG_MS = 600_000;
/** Commands that are sent at once. */
const BATCH = 100;
const TASKS = Array.from({ length: MAX_PARKED_CALLS }, (_, i) => `task-${i}`);

/** What happens when as many calls wait as may. */
export function parkedBoundContract(name: string, open: OpenStore): void {
  describe(`${name}: ${MAX_PARKED_CALLS} parked calls that wait`, () => {
    const { store } = opened(open);
    const park = (task: string, call = task, forMs = LONG_MS) => store().parked.park(task, call, forMs);
    const claim = (task: string, claimant: string) => store().parked.claim(task, claimant, LONG_MS);
    const release = (task: string, claimant: string) => store().parked.release(task, claimant, LONG_MS);

    it('leave no room for one more, while each of them can still be replaced', async () => {
      assert.deepEqual(await ofAll((task) => park(task)), all(true));
      assert.equal(await park('one-more'), false);
      assert.equal(await park('task-500', 'replaced'), true);
      assert.equal((await claim('one-more', 'buyer')).kind, 'none');
    });

    it('make room when one is claimed, which counts no longer', async () => {
      assert.equal((await claim('task-0', 'buyer')).kind, 'yours');
      assert.equal(await park('one-more'), true);
      assert.equal(await park('two-more'), false);
    });

    it('do not let a claimed one be released among them: it is forgotten, or claims for nothing would have no bound', async () => {
      assert.equal(await release('task-0', 'other'), false);
      assert.equal((await claim('task-0', 'other')).kind, 'taken', 'a stranger releases nothing');
      assert.equal(await release('task-0', 'buyer'), false);
      assert.equal((await claim('task-0', 'buyer')).kind, 'none');
      // What waits already takes no room by being released again.
      assert.equal(await release('task-2', 'buyer'), true);
    });

    it('count the one that was released as soon as there was room', async () => {
      assert.equal((await claim('task-1', 'buyer')).kind, 'yours');
      assert.equal(await release('task-1', 'buyer'), true);
      assert.equal(await park('two-more'), false);
      assert.equal((await claim('task-1', 'buyer')).kind, 'yours');
    });

    it('make room when the time of one is over', async () => {
      assert.equal(await park('brief', 'brief', 1), true);
      await clockPast(store, (await clockOf(store())) + 1);
      assert.equal(await park('two-more'), true);
      assert.equal(await park('three-more'), false);
    });

    it('were all kept, waiting or claimed, whatever was refused beside them', async () => {
      const calls = await ofAll((task, parked) => parked.claim(task, 'buyer', LONG_MS));
      const texts = calls.map((claimed) => (claimed.kind === 'yours' ? claimed.call : claimed.kind));
      assert.deepEqual(
        texts,
        TASKS.map((task) => ({ 'task-0': 'none', 'task-500': 'replaced' })[task] ?? task),
      );
      assert.deepEqual(
        calls.flatMap((claimed, i) => (claimed.kind === 'yours' && claimed.again ? [TASKS[i]] : [])),
        ['task-1'],
      );
    });

    /** Asks for every task, some at a time. */
    async function ofAll<T>(ask: (task: string, parked: ParkedCalls) => Promise<T>): Promise<readonly T[]> {
      const answers: T[] = [];
      for (let i = 0; i < TASKS.length; i += BATCH)
        answers.push(...(await Promise.all(TASKS.slice(i, i + BATCH).map((task) => ask(task, store().parked)))));
      return answers;
    }
  });
}

function all<T>(answer: T): readonly T[] {
  return TASKS.map(() => answer);
}
