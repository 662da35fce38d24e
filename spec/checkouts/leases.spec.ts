import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { retryAfterS } from '../../src/checkouts/leases.ts';

describe('when to ask again', () => {
  for (const [ageMs, leftMs, seconds] of [
    [0, 28_000, 1],
    [1_000, 27_000, 1],
    [1_001, 26_999, 2],
    [9_500, 18_500, 10],
    [27_000, 1_000, 1],
    [27_500, 500, 1],
    [30_000, 0, 1],
    [30_000, -5_000, 1],
  ] as const)
    it(`${ageMs} ms old with ${leftMs} ms left: ${seconds} s`, () => assert.equal(retryAfterS(ageMs, leftMs), seconds));
});
