import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { Deadline } from '../../src/backend/deadline.ts';

describe('the deadline of an exchange', () => {
  let now = 0;
  let late = 0;
  beforeEach(() => {
    now = 0;
    late = 0;
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => now);
  });
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });
  const begin = () =>
    new Deadline({ backend: 1_000, reader: 300 }, () => {
      late += 1;
    });
  const pass = (ms: number): number => {
    now += ms;
    mock.timers.tick(ms);
    return late;
  };

  it('is the backend’s from the start', () => {
    assert.equal(begin().running, 'backend');
    assert.deepEqual([pass(999), pass(1)], [0, 1]);
  });

  it('stands still for the backend while the reader holds the answer back', () => {
    const deadline = begin();
    pass(600);
    deadline.handOver();
    assert.equal(deadline.running, 'reader');
    pass(299);
    deadline.handOver();
    assert.equal(deadline.running, 'backend');
    assert.deepEqual([pass(399), pass(1)], [0, 1]);
  });

  it('adds up the times that the reader holds the answer back', () => {
    const deadline = begin();
    for (const heldMs of [100, 150]) {
      deadline.handOver();
      pass(heldMs);
      deadline.handOver();
      pass(10);
    }
    deadline.handOver();
    assert.deepEqual([pass(49), pass(1)], [0, 1]);
  });

  it('ends a side at once whose time is over when it begins', () => {
    const deadline = begin();
    // The event loop was late: the time is over, but the timer has not run.
    now += 1_500;
    deadline.handOver();
    deadline.handOver();
    assert.deepEqual([late, pass(1)], [0, 1]);
  });

  it('calls nothing once it is stopped', () => {
    const deadline = begin();
    deadline.handOver();
    deadline.stop();
    assert.equal(pass(10_000), 0);
  });
});
