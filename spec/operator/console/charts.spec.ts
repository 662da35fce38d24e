import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chartsOf, known, percentile } from '../../../src/operator/console/charts.js';
import { rangeAt, unread } from '../../../src/operator/console/history.js';
import { oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-03-04T14:05:00.000Z');
const RANGE = rangeAt('day', NOW);

describe('percentiles', () => {
  for (const { of, share, is } of [
    { of: [], share: 0.5, is: undefined },
    { of: [7], share: 0.5, is: 7 },
    { of: [7], share: 0.99, is: 7 },
    { of: [1, 2], share: 0.5, is: 1 },
    { of: [1, 2, 3], share: 0.5, is: 2 },
    { of: Array.from({ length: 100 }, (_, at) => at + 1), share: 0.95, is: 95 },
    { of: Array.from({ length: 100 }, (_, at) => at + 1), share: 0.99, is: 99 },
    { of: Array.from({ length: 101 }, (_, at) => at + 1), share: 0.99, is: 100 },
  ])
    it(`${share} of ${of.length} durations is ${is}`, () => assert.equal(percentile(of, share), is));

  it('are the least duration that so many calls did not exceed', () => {
    const durations = fc.array(fc.nat(), { minLength: 1 }).map((numbers) => numbers.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (sorted, share) => {
        const found = percentile(sorted, share) ?? assert.fail('one');
        const within = (limit: number) => sorted.filter((ms) => ms <= limit).length / sorted.length;
        assert.ok(sorted.includes(found) && within(found) >= share);
        for (const lower of sorted.filter((ms) => ms < found)) assert.ok(within(lower) < share);
      }),
    );
  });
});

describe('what is known of a bucket', () => {
  const reach = (hoursAgo: number) => ({ entries: 1, since: NOW - hoursAgo * HOUR_MS, end: 'kept' }) as const;
  for (const { what, hoursAgo, bucket, is } of [
    { what: 'a bucket after the reach', hoursAgo: 5, bucket: 20, is: 'whole' },
    { what: 'the bucket of now', hoursAgo: 5, bucket: 23, is: 'part' },
    { what: 'the bucket in which the reach begins', hoursAgo: 5, bucket: 18, is: 'part' },
    { what: 'a bucket before the reach', hoursAgo: 5, bucket: 17, is: 'none' },
    { what: 'the first bucket of a range that is whole', hoursAgo: 24, bucket: 0, is: 'whole' },
  ] as const)
    it(`${what} is known: ${is}`, () => assert.equal(known(RANGE, reach(hoursAgo), NOW, bucket), is));

  it('what is owed is shown from before the reach too, in the sum and where it stands', () => {
    const history = unread(RANGE, NOW);
    history.tally.addReceipts([oldReceipt(1, {}, Date.now() - NOW + 10 * HOUR_MS)]);
    const [, , lost] = chartsOf({ ...history, receipts: reach(2) })[1]?.series ?? [];
    assert.deepEqual([lost?.values[13]?.units, lost?.values[12], lost?.total?.units], [1n, undefined, 1n]);
  });

  it('what is not known has no number, and what is known and did not happen is 0', () => {
    const history = unread(RANGE, NOW);
    history.tally.addReceipts([oldReceipt(1, { delivered: true }, Date.now() - NOW + HOUR_MS)]);
    const charts = chartsOf({ ...history, receipts: reach(2) });
    const [revenue, deliveries, , latency] = charts.map(({ series }) => series[0]?.values.map((value) => value?.units));
    assert.deepEqual(
      [revenue?.slice(-4), deliveries?.slice(-4)],
      [
        [undefined, 0n, 2n, 0n],
        [undefined, 0n, 1n, 0n],
      ],
    );
    assert.deepEqual(latency?.slice(-4), [undefined, undefined, 812n, undefined]);
    assert.ok(charts[2]?.series.every(({ values }) => values.every((value) => value === undefined)));
  });
});
