import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Admitted } from '../../../src/limiter.ts';
import {
  type AnswerBudget,
  createAnswerBudget,
  FREE_WAIT_MS,
  PAID_WAIT_MS,
} from '../../../src/server/limits/load-shedding.ts';
import { type VirtualTime, virtualTime } from '../../payments/settlement/virtual-time.ts';

const BYTES = 100;
const free = (size: number) => ({ size, rank: 'free' });
const paid = (size: number) => ({ size, rank: 'paid' });

/** The state of a reservation: `granted`, `refused` after its wait, or `waiting`. */
async function stateOf(reservation: Promise<Admitted | undefined>): Promise<'granted' | 'refused' | 'waiting'> {
  const waiting = Symbol('waiting');
  const state = await Promise.race([reservation, new Promise((resolve) => setImmediate(resolve, waiting))]);
  if (state === waiting) return 'waiting';
  return state === undefined ? 'refused' : 'granted';
}

describe('the memory for answers', () => {
  let budget: AnswerBudget;
  let time: VirtualTime;
  beforeEach(() => {
    time = virtualTime();
    budget = createAnswerBudget(BYTES, time);
  });

  it('is reserved up to the last byte', async () => {
    assert.equal(await stateOf(budget.wait(free(60))), 'granted');
    assert.equal(await stateOf(budget.wait(free(40))), 'granted');
    assert.equal(await stateOf(budget.wait(free(1))), 'waiting');
    assert.deepEqual([budget.taken, budget.waiting], [BYTES, 1]);
  });

  it('goes to the answer that waited longest, which no smaller one overtakes', async () => {
    const held = await budget.wait(free(60));
    const large = budget.wait(free(80));
    const small = budget.wait(free(10));
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['waiting', 'waiting']);
    held?.leave();
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['granted', 'granted']);
    assert.equal(budget.taken, 90);
  });

  it('goes to paid answers first', async () => {
    const held = await budget.wait(free(BYTES));
    const first = budget.wait(free(80));
    const bought = budget.wait(paid(80));
    held?.leave();
    assert.deepEqual([await stateOf(bought), await stateOf(first)], ['granted', 'waiting']);
  });

  it('is refused to a free answer after its wait, and to a paid one after a longer', async () => {
    await budget.wait(free(BYTES));
    const asked = [budget.wait(free(1)), budget.wait(paid(1))];
    const states = (): Promise<string[]> => Promise.all(asked.map(stateOf));
    await time.pass(FREE_WAIT_MS - 1);
    assert.deepEqual(await states(), ['waiting', 'waiting']);
    await time.pass(1);
    assert.deepEqual(await states(), ['refused', 'waiting']);
    await time.pass(PAID_WAIT_MS - FREE_WAIT_MS);
    assert.deepEqual(await states(), ['refused', 'refused']);
    assert.deepEqual([budget.taken, budget.waiting], [BYTES, 0]);
  });

  it('goes to the next answer when one stops waiting', async () => {
    await budget.wait(free(60));
    const tooLarge = budget.wait(free(80));
    await time.pass(FREE_WAIT_MS - 1);
    const fits = budget.wait(free(40));
    assert.equal(await stateOf(fits), 'waiting');
    await time.pass(1);
    assert.deepEqual([await stateOf(tooLarge), await stateOf(fits)], ['refused', 'granted']);
  });

  it('goes as a whole to an answer larger than it, alone', async () => {
    const held = await budget.wait(free(BYTES + 1));
    assert.notEqual(held, undefined);
    assert.equal(await stateOf(budget.wait(free(1))), 'waiting');
  });
});
