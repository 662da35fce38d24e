import assert from 'node:assert/strict';
import { beforeEach, describe, it, mock } from 'node:test';
import {
  type AnswerBudget,
  createAnswerBudget,
  FREE_WAIT_MS,
  PAID_WAIT_MS,
} from '../../../src/server/load-shedding/answer-budget.ts';

const BYTES = 100;
const free = (bytes: number) => ({ bytes, paid: false });
const paid = (bytes: number) => ({ bytes, paid: true });

/** The state of a reservation: `granted`, `refused` after its wait, or `waiting`. */
async function stateOf(reservation: Promise<(() => void) | undefined>): Promise<'granted' | 'refused' | 'waiting'> {
  const waiting = Symbol('waiting');
  const state = await Promise.race([reservation, new Promise((resolve) => setImmediate(resolve, waiting))]);
  if (state === waiting) return 'waiting';
  return state === undefined ? 'refused' : 'granted';
}

describe('the memory for answers', () => {
  let budget: AnswerBudget;
  beforeEach((t) => {
    budget = createAnswerBudget(BYTES);
    mock.timers.enable({ apis: ['setTimeout'] });
    if ('after' in t) t.after(() => mock.timers.reset());
  });

  it('is reserved up to the last byte', async () => {
    assert.equal(await stateOf(budget.reserve(free(60))), 'granted');
    assert.equal(await stateOf(budget.reserve(free(40))), 'granted');
    assert.equal(await stateOf(budget.reserve(free(1))), 'waiting');
    assert.deepEqual([budget.reserved(), budget.waiting()], [BYTES, 1]);
  });

  it('goes to the answer that waited longest, which no smaller one overtakes', async () => {
    const release = await budget.reserve(free(60));
    const large = budget.reserve(free(80));
    const small = budget.reserve(free(10));
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['waiting', 'waiting']);
    release?.();
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['granted', 'granted']);
    assert.equal(budget.reserved(), 90);
  });

  it('goes to paid answers first', async () => {
    const release = await budget.reserve(free(BYTES));
    const first = budget.reserve(free(80));
    const bought = budget.reserve(paid(80));
    release?.();
    assert.deepEqual([await stateOf(bought), await stateOf(first)], ['granted', 'waiting']);
  });

  it('is refused to a free answer after its wait, and to a paid one after a longer', async () => {
    await budget.reserve(free(BYTES));
    const asked = [budget.reserve(free(1)), budget.reserve(paid(1))];
    const states = (): Promise<string[]> => Promise.all(asked.map(stateOf));
    mock.timers.tick(FREE_WAIT_MS - 1);
    assert.deepEqual(await states(), ['waiting', 'waiting']);
    mock.timers.tick(1);
    assert.deepEqual(await states(), ['refused', 'waiting']);
    mock.timers.tick(PAID_WAIT_MS - FREE_WAIT_MS);
    assert.deepEqual(await states(), ['refused', 'refused']);
    assert.deepEqual([budget.reserved(), budget.waiting()], [BYTES, 0]);
  });

  it('goes to the next answer when one stops waiting', async () => {
    await budget.reserve(free(60));
    const tooLarge = budget.reserve(free(80));
    mock.timers.tick(FREE_WAIT_MS - 1);
    const fits = budget.reserve(free(40));
    assert.equal(await stateOf(fits), 'waiting');
    mock.timers.tick(1);
    assert.deepEqual([await stateOf(tooLarge), await stateOf(fits)], ['refused', 'granted']);
  });

  it('goes as a whole to an answer larger than it, alone', async () => {
    const release = await budget.reserve(free(BYTES + 1));
    assert.notEqual(release, undefined);
    assert.equal(await stateOf(budget.reserve(free(1))), 'waiting');
  });
});
