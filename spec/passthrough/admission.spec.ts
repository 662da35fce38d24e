import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import type { Refusal } from '../../src/limiter.ts';
import {
  CALM_STARTING_MS,
  createAdmission,
  createRateWatch,
  LEAST_RATE,
  MAX_WAIT_MS,
  MAX_WAITING,
  STARTING,
  STARTING_MS,
} from '../../src/passthrough/admission.ts';
import { type VirtualTime, virtualTime } from '../payments/settlement/virtual-time.ts';

describe('the admission of passed requests', () => {
  let time: VirtualTime;
  beforeEach(() => {
    time = virtualTime();
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => mock.timers.reset());

  /** Enters entrants by number, and notes what becomes of each. */
  function entrance(maxRunning: number, loopBusy = true) {
    const admission = createAdmission(
      () => maxRunning,
      () => (loopBusy ? 1 : 0.5),
      time,
    );
    const begun: number[] = [];
    const refused: [number, Refusal][] = [];
    let count = 0;
    const enter = (client = `client ${count}`) => {
      count += 1;
      const name = count;
      return admission.enter({
        client,
        start: () => begun.push(name),
        refuse: (reason) => refused.push([name, reason]),
      });
    };
    return { admission, begun, refused, enter, many: (times: number) => Array.from({ length: times }, () => enter()) };
  }

  it('starts a few at a time, and the next in the order they came', () => {
    const { begun, many, admission } = entrance(100);
    const entered = many(STARTING + 2);
    assert.equal(begun.length, STARTING);
    assert.equal(admission.waiting(), 2);
    entered[1]?.started();
    assert.deepEqual(begun.slice(STARTING), [STARTING + 1]);
    entered[0]?.ended();
    assert.deepEqual(begun.slice(STARTING), [STARTING + 1, STARTING + 2]);
    assert.equal(admission.running(), STARTING + 1);
  });

  it('counts none as starting for longer than the backend may take', () => {
    const { begun, many } = entrance(100);
    many(STARTING + 1);
    mock.timers.tick(STARTING_MS - 1);
    assert.equal(begun.length, STARTING);
    mock.timers.tick(2);
    assert.equal(begun.length, STARTING + 1);
  });

  it('counts them as starting for a moment only while the loop has time', () => {
    const { begun, many } = entrance(100, false);
    many(STARTING + 1);
    assert.equal(begun.length, STARTING);
    mock.timers.tick(CALM_STARTING_MS);
    assert.equal(begun.length, STARTING + 1);
  });

  it('runs no more than it may, however many have started', () => {
    const { begun, many, admission } = entrance(2);
    const [first] = many(3);
    mock.timers.tick(STARTING_MS + 1);
    assert.equal(begun.length, 2);
    first?.ended();
    first?.ended();
    assert.deepEqual(begun, [1, 2, 3]);
    assert.equal(admission.running(), 2);
  });

  it('refuses those that waited too long, and those that nothing can wait for', async () => {
    const { begun, refused, many, admission } = entrance(1);
    many(1 + MAX_WAITING);
    assert.deepEqual(refused, []);
    many(1);
    assert.deepEqual(refused, [[MAX_WAITING + 2, 'full']]);
    mock.timers.tick(STARTING_MS);
    await time.pass(MAX_WAIT_MS - 1);
    assert.equal(refused.length, 1);
    await time.pass(1);
    assert.equal(refused.length, 1 + MAX_WAITING);
    assert.equal(admission.waiting(), 0);
    assert.deepEqual(begun, [1]);
  });

  it('forgets one that leaves while it waits', () => {
    const { begun, refused, many } = entrance(1);
    const [first, second] = many(3);
    second?.ended();
    first?.ended();
    assert.deepEqual(begun, [1, 3]);
    assert.deepEqual(refused, []);
  });

  it('leaves places to others, however many one client asks for, and clients take turns', () => {
    const { begun, refused, enter, admission } = entrance(8);
    const mine = Array.from({ length: 20 }, () => enter('one'));
    for (const entered of mine) entered.started();
    assert.deepEqual(begun, [1, 2, 3, 4]);
    assert.equal(admission.crowded(), true);
    enter('other').started();
    enter('third').started();
    assert.deepEqual(begun.slice(4), [21, 22]);
    mine[0]?.ended();
    assert.deepEqual(begun.slice(6), [], 'three are its share among three clients');
    for (const entered of mine.slice(1, 5)) entered.ended();
    assert.deepEqual(begun.slice(6), [5, 6, 7]);
    assert.deepEqual(refused, []);
  });

  it('lets no client fill the line, and starts the next of each client in turn', () => {
    const { begun, refused, enter, admission } = entrance(1_000);
    const first = Array.from({ length: STARTING }, () => enter('first'));
    for (let asked = 0; asked < MAX_WAITING; asked += 1) enter('one');
    assert.deepEqual([admission.waiting(), refused.length], [MAX_WAITING / 2, MAX_WAITING / 2]);
    enter('other');
    for (const entered of first) entered.started();
    const [one, ...rest] = begun.slice(STARTING);
    assert.deepEqual([one, rest[0]], [STARTING + 1, STARTING + MAX_WAITING + 1]);
  });
});

describe('the least rate of a body', () => {
  afterEach(() => mock.timers.reset());

  for (const [what, perSecond, ends] of [
    ['ends one below it', LEAST_RATE / 2, true],
    ['leaves one above it', LEAST_RATE * 1.25, false],
    ['leaves one that nothing is waited for', undefined, false],
  ] as const)
    it(what, () => {
      mock.timers.enable({ apis: ['setInterval'] });
      let seconds = 0;
      let ended = 0;
      const moved = (): number | undefined => (perSecond === undefined ? undefined : perSecond * seconds);
      const stop = createRateWatch(() => true)(moved, () => {
        ended += 1;
      });
      for (; seconds < 120; seconds += 0.5) mock.timers.tick(500);
      assert.equal(ended, ends ? 1 : 0);
      stop();
    });
});
