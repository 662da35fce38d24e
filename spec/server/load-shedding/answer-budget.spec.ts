import assert from 'node:assert/strict';
import { beforeEach, describe, it, mock } from 'node:test';
import {
  type AnswerBudget,
  type Asking,
  createAnswerBudget,
  FREE_WAIT_MS,
  PAID_WAIT_MS,
} from '../../../src/server/load-shedding/answer-budget.ts';

const BYTES = 100;
const free = (bytes: number): Asking => ({ bytes, paid: false });
const paid = (bytes: number): Asking => ({ bytes, paid: true });

/** What a reservation has come to: the release, `none` when it was given up, `waiting`. */
async function stateOf(reservation: Promise<(() => void) | undefined>): Promise<'room' | 'none' | 'waiting'> {
  const waiting = Symbol('waiting');
  const state = await Promise.race([reservation, new Promise((resolve) => setImmediate(resolve, waiting))]);
  if (state === waiting) return 'waiting';
  return state === undefined ? 'none' : 'room';
}

describe('the memory for answers', () => {
  let budget: AnswerBudget;
  beforeEach((t) => {
    budget = createAnswerBudget(BYTES);
    mock.timers.enable({ apis: ['setTimeout'] });
    if ('after' in t) t.after(() => mock.timers.reset());
  });

  it('is given out up to the last byte', async () => {
    assert.equal(await stateOf(budget.reserve(free(60))), 'room');
    assert.equal(await stateOf(budget.reserve(free(40))), 'room');
    assert.equal(await stateOf(budget.reserve(free(1))), 'waiting');
    assert.deepEqual([budget.reserved(), budget.waiting()], [BYTES, 1]);
  });

  it('goes to who waited longest, and the next in line is not overtaken by a smaller one', async () => {
    const release = await budget.reserve(free(60));
    const large = budget.reserve(free(80));
    const small = budget.reserve(free(10));
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['waiting', 'waiting']);
    release?.();
    assert.deepEqual([await stateOf(large), await stateOf(small)], ['room', 'room']);
    assert.equal(budget.reserved(), 90);
  });

  it('goes to paid answers first', async () => {
    const release = await budget.reserve(free(BYTES));
    const first = budget.reserve(free(80));
    const bought = budget.reserve(paid(80));
    release?.();
    assert.deepEqual([await stateOf(bought), await stateOf(first)], ['room', 'waiting']);
  });

  it('is refused to a free answer after its wait, and to a paid one after a longer', async () => {
    await budget.reserve(free(BYTES));
    const asked = [budget.reserve(free(1)), budget.reserve(paid(1))];
    const states = (): Promise<string[]> => Promise.all(asked.map(stateOf));
    mock.timers.tick(FREE_WAIT_MS - 1);
    assert.deepEqual(await states(), ['waiting', 'waiting']);
    mock.timers.tick(1);
    assert.deepEqual(await states(), ['none', 'waiting']);
    mock.timers.tick(PAID_WAIT_MS - FREE_WAIT_MS);
    assert.deepEqual(await states(), ['none', 'none']);
    assert.deepEqual([budget.reserved(), budget.waiting()], [BYTES, 0]);
  });

  it('goes on to the next when somebody stops waiting', async () => {
    await budget.reserve(free(60));
    const tooLarge = budget.reserve(free(80));
    mock.timers.tick(FREE_WAIT_MS - 1);
    const fits = budget.reserve(free(40));
    assert.equal(await stateOf(fits), 'waiting');
    mock.timers.tick(1);
    assert.deepEqual([await stateOf(tooLarge), await stateOf(fits)], ['none', 'room']);
  });

  it('is all there is for an answer larger than it, which gets it alone', async () => {
    const release = await budget.reserve(free(BYTES + 1));
    assert.notEqual(release, undefined);
    assert.equal(await stateOf(budget.reserve(free(1))), 'waiting');
  });
});
