import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { budgetProblem, drainLength, drainSeconds } from '../../src/sidecar/lifecycle.ts';

describe('the length of a drain', () => {
  it('is the time of new calls, and 30 s for what runs where nothing is sold', () => {
    assert.deepEqual(drainLength(5, 0), { propagationMs: 5_000, finishMs: 30_000 });
    assert.equal(drainSeconds(drainLength(5, 0)), 35);
  });

  it('gives the longest call a minute for its settlement', () => {
    for (const [timeoutMs, seconds] of [
      [10_000, 75],
      [120_000, 185],
      [10_001, 76],
      [1, 66],
    ] as const)
      assert.equal(drainSeconds(drainLength(5, timeoutMs)), seconds, `${timeoutMs}`);
    assert.equal(drainSeconds(drainLength(0, 10_000)), 70);
  });

  it('fits what a pod leaves for it, or says what the pod must say', () => {
    const length = drainLength(5, 10_000);
    assert.equal(budgetProblem(length, undefined), undefined);
    assert.equal(budgetProblem(length, 75), undefined);
    assert.match(budgetProblem(length, 65) ?? '', /is 65, .* 75 s; .*agent-commerce\.dev\/drain-seconds: "75"/);
  });
});
