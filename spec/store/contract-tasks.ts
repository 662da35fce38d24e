import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { DECLINED, MAX_DECLINED } from '../../src/payments/settlement/task-claims.ts';
import { clockOf, clockPast, type OpenStore, opened } from './opened.ts';

/** Longer than any test lasts, milliseconds. */
const LONG_MS = 600_000;
/** Long enough for two commands, short enough to be waited for, milliseconds. */
const BRIEF_MS = 1_000;
const ODD = ['', '\ud800', 'a b', 'a\0', 'a\n', 'n'.repeat(257), 'n'.repeat(100_000)];
const ODD_SPANS = [-1, 0.5, Number.NaN];

export function taskContract(name: string, open: OpenStore): void {
  describe(`${name}: tasks that wait for a payment`, () => {
    const { store } = opened(open);
    const tasks = () => store().tasks;

    it('have no holder until they are claimed, and then the first claimant, however often it claims', async () => {
      const task = randomUUID();
      assert.equal(await tasks().holder(task), undefined);
      for (const attempt of ['one', 'two', 'two']) {
        assert.equal(await tasks().claim(task, 'buyer', attempt, LONG_MS), true);
        assert.equal(await tasks().claim(task, 'other', attempt, LONG_MS), false);
        assert.equal(await tasks().holder(task), 'buyer');
      }
    });

    it('go to one of fifty claimants at once', async () => {
      const task = randomUUID();
      const claimants = Array.from({ length: 50 }, (_, i) => `buyer-${i}`);
      const claims = await Promise.all(claimants.map((claimant) => tasks().claim(task, claimant, 'attempt', LONG_MS)));
      const [winner, ...others] = claimants.filter((_, i) => claims[i]);
      assert.deepEqual([await tasks().holder(task), others], [winner, []]);
    });

    it('are free again when the last attempt of a payment moved nothing, and not before', async () => {
      const task = randomUUID();
      for (const attempt of ['one', 'two']) await tasks().claim(task, 'buyer', attempt, LONG_MS);
      await tasks().end(task, 'buyer', 'one', 'nothing');
      await tasks().end(task, 'buyer', 'one', 'nothing');
      await tasks().end(task, 'other', 'two', 'nothing');
      assert.equal(await tasks().holder(task), 'buyer');
      await tasks().end(task, 'buyer', 'two', 'nothing');
      assert.equal(await tasks().holder(task), undefined);
      assert.equal(await tasks().claim(task, 'other', 'three', LONG_MS), true);
    });

    it('stay with a payment that kept them, whatever the result of later attempts', async () => {
      const task = randomUUID();
      for (const attempt of ['one', 'two']) await tasks().claim(task, 'buyer', attempt, LONG_MS);
      await tasks().end(task, 'buyer', 'one', 'kept');
      await tasks().end(task, 'buyer', 'two', 'nothing');
      assert.equal(await tasks().claim(task, 'other', 'three', LONG_MS), false);
      await tasks().claim(task, 'buyer', 'four', LONG_MS);
      await tasks().end(task, 'buyer', 'four', 'nothing');
      assert.equal(await tasks().holder(task), 'buyer');
    });

    it('are free at once when their payment can never pay', async () => {
      const task = randomUUID();
      for (const attempt of ['one', 'two']) await tasks().claim(task, 'buyer', attempt, LONG_MS);
      await tasks().end(task, 'buyer', 'one', 'kept');
      await tasks().end(task, 'other', 'two', 'worthless');
      assert.equal(await tasks().holder(task), 'buyer');
      await tasks().end(task, 'buyer', 'two', 'worthless');
      assert.equal(await tasks().holder(task), undefined);
      await tasks().end(task, 'buyer', 'two', 'kept');
      assert.equal(await tasks().holder(task), undefined, 'an end makes no claim');
    });

    it('can be declined while no payment has them, and then cannot be claimed', async () => {
      const task = randomUUID();
      for (const _ of ['once', 'twice']) assert.equal(await tasks().decline(task, LONG_MS), true);
      assert.equal(await tasks().holder(task), DECLINED);
      assert.equal(await tasks().claim(task, 'buyer', 'one', LONG_MS), false);
      await tasks().end(task, 'buyer', 'one', 'worthless');
      assert.equal(await tasks().holder(task), DECLINED);
      const paid = randomUUID();
      await tasks().claim(paid, 'buyer', 'one', LONG_MS);
      assert.equal(await tasks().decline(paid, LONG_MS), false);
      assert.equal(await tasks().holder(paid), 'buyer');
    });

    it('are forgotten with their time, claimed or declined', async () => {
      const [claimed, declined] = [randomUUID(), randomUUID()];
      const from = await clockOf(store());
      await tasks().claim(claimed, 'buyer', 'one', BRIEF_MS);
      await tasks().decline(declined, BRIEF_MS);
      assert.deepEqual([await tasks().holder(claimed), await tasks().holder(declined)], ['buyer', DECLINED]);
      await clockPast(store, from + BRIEF_MS + 500);
      for (const task of [claimed, declined]) {
        assert.equal(await tasks().holder(task), undefined);
        assert.equal(await tasks().claim(task, 'other', 'one', LONG_MS), true);
      }
    });

    it('that were declined are remembered up to a bound: then the oldest is forgotten', async () => {
      const [first, last] = [randomUUID(), randomUUID()];
      await tasks().decline(first, BRIEF_MS * 100);
      const many = Array.from({ length: MAX_DECLINED }, () => randomUUID());
      for (let at = 0; at < many.length; at += 100)
        await Promise.all(many.slice(at, at + 100).map((task) => tasks().decline(task, LONG_MS)));
      assert.equal(await tasks().holder(first), undefined);
      assert.equal(await tasks().decline(last, LONG_MS), true);
      assert.equal(await tasks().holder(last), DECLINED);
    });

    it('have names, claimants, attempts and times that can be written', async () => {
      for (const odd of ODD) {
        await assert.rejects(tasks().holder(odd), RangeError);
        await assert.rejects(tasks().claim(odd, 'buyer', 'one', LONG_MS), RangeError);
        await assert.rejects(tasks().claim('task', odd, 'one', LONG_MS), RangeError);
        await assert.rejects(tasks().claim('task', 'buyer', odd, LONG_MS), RangeError);
        await assert.rejects(tasks().end('task', 'buyer', odd, 'kept'), RangeError);
        await assert.rejects(tasks().decline(odd, LONG_MS), RangeError);
      }
      await assert.rejects(tasks().claim('task', DECLINED, 'one', LONG_MS), RangeError);
      for (const odd of ODD_SPANS) {
        await assert.rejects(tasks().claim('task', 'buyer', 'one', odd), RangeError);
        await assert.rejects(tasks().decline('task', odd), RangeError);
      }
    });
  });
}
