import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Frequency, periodStart } from '../../../../src/mandates/ap2/constraints/payment-constraints.ts';

/** A moment, and when the period began that it lies in. */
const PERIODS: readonly (readonly [Frequency, string, string])[] = [
  ['DAILY', '2026-11-20T00:00:00Z', '2026-11-20'],
  ['DAILY', '2026-11-20T23:59:59Z', '2026-11-20'],
  ['WEEKLY', '2026-11-16T00:00:00Z', '2026-11-16'],
  ['WEEKLY', '2026-11-15T23:59:59Z', '2026-11-09'],
  ['WEEKLY', '2026-11-22T23:59:59Z', '2026-11-16'],
  ['WEEKLY', '1970-01-01T00:00:00Z', '1969-12-29'],
  ['BIWEEKLY', '1970-01-11T23:59:59Z', '1969-12-29'],
  ['BIWEEKLY', '1970-01-12T00:00:00Z', '1970-01-12'],
  ['BIWEEKLY', '2026-11-20T12:00:00Z', '2026-11-16'],
  ['BIWEEKLY', '2026-11-23T00:00:00Z', '2026-11-16'],
  ['MONTHLY', '2026-11-01T00:00:00Z', '2026-11-01'],
  ['MONTHLY', '2026-11-30T23:59:59Z', '2026-11-01'],
  ['MONTHLY', '2028-02-29T12:00:00Z', '2028-02-01'],
  ['QUARTERLY', '2026-03-31T23:59:59Z', '2026-01-01'],
  ['QUARTERLY', '2026-04-01T00:00:00Z', '2026-04-01'],
  ['QUARTERLY', '2026-11-20T12:00:00Z', '2026-10-01'],
  ['ANNUALLY', '2026-01-01T00:00:00Z', '2026-01-01'],
  ['ANNUALLY', '2026-12-31T23:59:59Z', '2026-01-01'],
];

describe('calendar periods of UTC (ap2 7.3)', () => {
  for (const [frequency, at, start] of PERIODS)
    it(`${frequency}: ${at} lies in the one of ${start}`, () => {
      const seconds = periodStart(frequency, Date.parse(at) / 1_000);
      assert.equal(seconds, Date.parse(`${start}T00:00:00Z`) / 1_000);
    });

  it('ON_DEMAND has none', () => assert.equal(periodStart('ON_DEMAND', 1_795_176_000), undefined));
});
