import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_PARKED_LENGTH, type ParkedClaim } from '../../src/payments/parked-calls.ts';
import { StoreError } from '../../src/store/store.ts';
import { clockOf, clockPast, type OpenStore, opened } from './opened.ts';

/** Longer than any test lasts, milliseconds. */
const LONG_MS = 600_000;
/** Long enough for two commands, short enough to be waited for, milliseconds. */
const BRIEF_MS = 1_000;
/** What names and claimants cannot be. */
const ODD = ['', '\ud800', 'a b', 'a\0', 'a\n', 'n'.repeat(257), 'n'.repeat(100_000)];
const ODD_SPANS = [-1, 0.5, Number.NaN];

const TAKEN: ParkedClaim = { kind: 'taken' };
const NONE: ParkedClaim = { kind: 'none' };
const first = (call: string): ParkedClaim => ({ kind: 'yours', call, again: false });
const again = (call: string): ParkedClaim => ({ kind: 'yours', call, again: true });

/** What becomes of calls that wait for their payment. */
export function parkedContract(name: string, open: OpenStore): void {
  describe(`${name}: parked calls`, () => {
    const { store } = opened(open);
    const parked = async (call: string, forMs = LONG_MS): Promise<string> => {
      const task = randomUUID();
      assert.equal(await store().parked.park(task, call, forMs), true);
      return task;
    };
    const claim = (task: string, claimant: string, forMs = LONG_MS) => store().parked.claim(task, claimant, forMs);
    const release = (task: string, claimant: string, forMs = LONG_MS) => store().parked.release(task, claimant, forMs);

    it('belong to their first claimant, as they were parked and as often as he asks, and to nobody else', async () => {
      const text = '{"text":"Zürich\\n"}\n\0\u{1f4b6} ';
      for (const call of [text, '']) {
        const task = await parked(call);
        assert.deepEqual(await claim(task, 'buyer'), first(call));
        assert.deepEqual(await claim(task, 'other'), TAKEN);
        assert.deepEqual(await claim(task, 'buyer'), again(call));
        assert.deepEqual(await claim(task, 'buyer'), again(call));
      }
      assert.deepEqual(await claim(randomUUID(), 'buyer'), NONE);
    });

    it('stay with a claimant who asked more than once: while one attempt gives up, the other may still pay', async () => {
      const task = await parked('call');
      assert.deepEqual(await claim(task, 'buyer'), first('call'));
      assert.deepEqual(await claim(task, 'buyer'), again('call'));
      assert.equal(await release(task, 'buyer'), false);
      assert.deepEqual(await claim(task, 'other'), TAKEN);
      assert.deepEqual(await claim(task, 'buyer'), again('call'));
      // One after the other it is free each time.
      const next = await parked('next');
      for (const _ of ['once', 'twice']) {
        assert.deepEqual(await claim(next, 'buyer'), first('next'));
        assert.equal(await release(next, 'buyer'), true);
      }
    });

    it('go to one of fifty who claim them at once', async () => {
      const task = await parked('call');
      const claimants = Array.from({ length: 50 }, (_, i) => `buyer-${i}`);
      const answers = await Promise.all(claimants.map((claimant) => claim(task, claimant)));
      const winner = answers.findIndex(({ kind }) => kind === 'yours');
      assert.deepEqual(
        answers,
        answers.map((_, i) => (i === winner ? first('call') : TAKEN)),
      );
      assert.deepEqual(await claim(task, `buyer-${winner}`), again('call'));
    });

    it('are gone when their time is over, waiting or claimed, also for their claimant', async () => {
      const [brief, none, claimed, long] = [
        await parked('brief', 1),
        await parked('none', 0),
        await parked('claimed'),
        await parked('long'),
      ];
      assert.deepEqual(await claim(claimed, 'buyer', 1), first('claimed'));
      await clockPast(store, (await clockOf(store())) + 1);
      for (const over of [brief, none, claimed]) {
        assert.equal(await release(over, 'buyer'), false);
        assert.deepEqual(await claim(over, 'buyer'), NONE);
      }
      assert.deepEqual(await claim(long, 'buyer'), first('long'));
    });

    it('stay for their claimant after the time for which they would have waited', async () => {
      const task = await parked('call', BRIEF_MS);
      await claim(task, 'buyer');
      const over = (await clockOf(store())) + BRIEF_MS;
      await delay(BRIEF_MS);
      await clockPast(store, over);
      assert.deepEqual(await claim(task, 'other'), TAKEN);
      assert.deepEqual(await claim(task, 'buyer'), again('call'));
    });

    it('are replaced, call and time, by a later one under the same name while nobody has claimed them', async () => {
      const task = await parked('first', 1);
      assert.equal(await store().parked.park(task, 'second', LONG_MS), true);
      await clockPast(store, (await clockOf(store())) + 1);
      assert.deepEqual(await claim(task, 'buyer'), first('second'));
      assert.equal(await store().parked.park(task, 'third', LONG_MS), false);
      assert.deepEqual(await claim(task, 'buyer'), again('second'));
    });

    it('wait for anybody, and for their new time, once their claimant and nobody else has released them', async () => {
      const task = await parked('call');
      await claim(task, 'buyer');
      assert.equal(await release(task, 'other'), false);
      assert.deepEqual(await claim(task, 'other'), TAKEN);
      assert.equal(await release(task, 'buyer'), true);
      assert.deepEqual(await claim(task, 'other'), first('call'));
      assert.equal(await release(task, 'buyer'), false);
      assert.equal(await release(task, 'other', 1), true);
      await clockPast(store, (await clockOf(store())) + 1);
      assert.deepEqual(await claim(task, 'buyer'), NONE);
      assert.equal(await release(randomUUID(), 'buyer'), false);
    });

    it('are released once: to release what waits changes nothing, neither its time nor its call', async () => {
      const task = await parked('call');
      await claim(task, 'buyer');
      assert.equal(await release(task, 'buyer'), true);
      assert.equal(await release(task, 'buyer', 0), true);
      assert.deepEqual(await claim(task, 'other'), first('call'));
    });

    it('can be parked again under their name once they are over', async () => {
      const task = await parked('call');
      await claim(task, 'buyer', 0);
      assert.equal(await store().parked.park(task, 'another', LONG_MS), true);
      assert.deepEqual(await claim(task, 'other'), first('another'));
    });

    it('are not seen by another merchant', async () => {
      const task = await parked('call');
      const other = await open(randomUUID());
      assert.deepEqual(await other.parked.claim(task, 'buyer', LONG_MS), NONE);
      assert.equal(await other.parked.release(task, 'buyer', LONG_MS), false);
      await other.close();
      assert.deepEqual(await claim(task, 'buyer'), first('call'));
    });

    it('may be as long as they may be, and longer ones are a bug of the caller, as are odd names and times', async () => {
      const longest = 'é'.repeat(MAX_PARKED_LENGTH);
      assert.deepEqual(await claim(await parked(longest), 'b'.repeat(256)), first(longest));
      const { park } = store().parked;
      const task = randomUUID();
      await assert.rejects(park(task, `${longest}x`, LONG_MS), RangeError);
      for (const odd of ODD) await assert.rejects(park(odd, 'call', LONG_MS), RangeError);
      for (const forMs of ODD_SPANS) await assert.rejects(park(task, 'call', forMs), RangeError);
      assert.deepEqual(await claim(task, 'buyer'), NONE);
    });

    it('are neither claimed nor released by odd claimants or for odd times: a bug of the caller', async () => {
      const task = await parked('call');
      for (const command of [claim, release]) {
        for (const odd of ODD) await assert.rejects(command(task, odd), RangeError);
        for (const forMs of ODD_SPANS) await assert.rejects(command(task, 'buyer', forMs), RangeError);
      }
      assert.deepEqual(await claim(task, 'buyer'), first('call'));
    });

    it('are not found under what cannot be a name: who asks may say anything', async () => {
      for (const odd of [...ODD, `${await parked('call')}\n`]) {
        assert.deepEqual(await claim(odd, 'buyer'), NONE);
        assert.equal(await release(odd, 'buyer'), false);
      }
    });

    it('are refused with a StoreError while the store is away', async () => {
      const shut = await open(randomUUID());
      await shut.close();
      const task = randomUUID();
      await assert.rejects(shut.parked.park(task, 'call', LONG_MS), StoreError);
      await assert.rejects(shut.parked.claim(task, 'buyer', LONG_MS), StoreError);
      await assert.rejects(shut.parked.release(task, 'buyer', LONG_MS), StoreError);
    });
  });
}
