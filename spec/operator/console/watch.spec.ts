import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { Refusal } from '../../../src/operator/console/gateway.js';
import {
  createWatch,
  LONGEST_RETRY_AFTER_MS,
  LONGEST_WAIT_MS,
  LOOK_EVERY_MS,
  waitAfter,
} from '../../../src/operator/console/session.js';

describe('waiting after failures', () => {
  for (const { failures, retryAfterS, waits } of [
    { failures: 1, waits: LOOK_EVERY_MS },
    { failures: 2, waits: 2 * LOOK_EVERY_MS },
    { failures: 4, waits: 8 * LOOK_EVERY_MS },
    { failures: 5, waits: LONGEST_WAIT_MS },
    { failures: 1_000, waits: LONGEST_WAIT_MS },
    { failures: 1, retryAfterS: 1, waits: LOOK_EVERY_MS },
    { failures: 1, retryAfterS: 60, waits: 60_000 },
    { failures: 1, retryAfterS: 299, waits: 299_000 },
    { failures: 1, retryAfterS: 301, waits: LONGEST_RETRY_AFTER_MS },
  ])
    it(`${failures} in a row, Retry-After ${retryAfterS ?? 'absent'}: ${waits} ms`, () =>
      assert.equal(waitAfter(failures, retryAfterS), waits));
});

describe('the watch', () => {
  let looks = 0;
  let visible = true;
  let fails: Error | undefined;
  const states: string[] = [];
  const open = () =>
    createWatch({
      look: async () => {
        looks += 1;
        if (fails !== undefined) throw fails;
      },
      onState: ({ kind }) => void states.push(kind),
      visible: () => visible,
    });
  /** Lets the time pass, and the looks that it begins end. */
  const passed = async (ms: number) => {
    mock.timers.tick(ms);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    looks = 0;
    visible = true;
    fails = undefined;
    states.length = 0;
  });
  afterEach(() => mock.timers.reset());

  it(`looks at once and every ${LOOK_EVERY_MS} ms`, async () => {
    const watch = open();
    await watch.now();
    await passed(LOOK_EVERY_MS - 1);
    assert.equal(looks, 1);
    await passed(1);
    assert.equal(looks, 2);
    watch.end();
    await passed(10 * LOOK_EVERY_MS);
    assert.equal(looks, 2);
  });

  it('pauses while the page is hidden, and looks at once when it is visible again', async () => {
    const watch = open();
    await watch.now();
    visible = false;
    await passed(LOOK_EVERY_MS);
    await passed(60_000);
    assert.deepEqual([looks, states.at(-1)], [1, 'hidden']);
    visible = true;
    await watch.now();
    assert.deepEqual([looks, states.at(-1)], [2, 'live']);
    watch.end();
  });

  it('backs off, and is back at its pace after the first good look', async () => {
    fails = new Refusal('away');
    const watch = open();
    await watch.now();
    await passed(LOOK_EVERY_MS);
    await passed(2 * LOOK_EVERY_MS - 1);
    assert.equal(looks, 2);
    await passed(1);
    assert.deepEqual([looks, states.at(-1)], [3, 'retrying']);
    fails = undefined;
    await watch.now();
    await passed(LOOK_EVERY_MS);
    assert.deepEqual([looks, states.at(-1)], [5, 'live']);
    watch.end();
  });

  for (const kind of ['token', 'missing'] as const)
    it(`ends when the refusal is "${kind}"`, async () => {
      fails = new Refusal(kind);
      const watch = open();
      await watch.now();
      await passed(LONGEST_RETRY_AFTER_MS);
      await watch.now();
      assert.deepEqual([looks, states], [1, ['ended']]);
    });

  it('reports no state of a look that ends after it was ended', async () => {
    const watch = open();
    const looking = watch.now();
    watch.end();
    await looking;
    assert.deepEqual(states, []);
  });
});
