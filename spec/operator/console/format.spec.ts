import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clock, counted, duration, shortened, span } from '../../../src/operator/console/format.js';

describe('the texts of the console', () => {
  for (const [ms, words] of [
    [0, '0 ms'],
    [999, '999 ms'],
    [1_000, '1.00 s'],
    [59_990, '59.99 s'],
    [125_000, '2 min 5 s'],
  ] as const)
    it(`${ms} ms took ${words}`, () => assert.equal(duration(ms), words));

  for (const [ms, words] of [
    [0, 'under a minute'],
    [59_999, 'under a minute'],
    [60_000, '1 min'],
    [3_600_000, '1 h 0 min'],
    [86_399_000, '23 h 59 min'],
    [172_800_000, '2 days'],
  ] as const)
    it(`${ms} ms are ${words}`, () => assert.equal(span(ms), words));

  it('a time of today has no day, another one has', () => {
    const now = new Date(2026, 1, 3, 14, 5, 6);
    assert.equal(clock(now.getTime(), now.getTime()), '14:05:06');
    assert.equal(clock(new Date(2026, 1, 2, 4, 5, 6).getTime(), now.getTime()), '2026-02-02 04:05:06');
    assert.equal(clock(Number.NaN, now.getTime()), 'unknown');
  });

  it('an address is known by both its ends, a short text is left alone', () => {
    assert.equal(shortened(`0x${'ab'.repeat(20)}`), '0xabab…abab');
    assert.equal(shortened('fourteen chars'), 'fourteen chars');
  });

  it('one is singular', () => assert.deepEqual([counted(1, 'call'), counted(0, 'call')], ['1 call', '0 calls']));
});
