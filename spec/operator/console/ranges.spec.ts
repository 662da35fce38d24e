import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bucketOf, labels, RANGE_KEYS, RANGES, rangeAt, utc } from '../../../src/operator/console/history.js';

const iso = (ms: number) => new Date(ms).toISOString();
const NOW = Date.parse('2026-03-04T14:05:06.789Z');

describe('the ranges of the charts', () => {
  for (const { key, from, to } of [
    { key: 'hour', from: '2026-03-04T13:06:00.000Z', to: '2026-03-04T14:06:00.000Z' },
    { key: 'day', from: '2026-03-03T15:00:00.000Z', to: '2026-03-04T15:00:00.000Z' },
    { key: 'week', from: '2026-02-25T18:00:00.000Z', to: '2026-03-04T18:00:00.000Z' },
    { key: 'month', from: '2026-02-03T00:00:00.000Z', to: '2026-03-05T00:00:00.000Z' },
  ] as const)
    it(`${RANGES[key].name} end with the bucket of now and begin at a round time of UTC`, () => {
      const range = rangeAt(key, NOW);
      assert.deepEqual([iso(range.from), iso(range.to)], [from, to]);
      assert.equal(range.from + range.buckets * range.stepMs, range.to);
      assert.equal(bucketOf(range, NOW), range.buckets - 1);
    });

  it('a bucket holds its first moment and not its end', () => {
    const range = rangeAt('day', NOW);
    const hour = 3_600_000;
    assert.deepEqual(
      [range.from - 1, range.from, range.from + hour - 1, range.from + hour, range.to - 1, range.to, Number.NaN].map(
        (at) => bucketOf(range, at),
      ),
      [undefined, 0, 0, 1, 23, undefined, undefined],
    );
  });

  it('a moment at which a bucket begins is in the range that begins with it', () => {
    const range = rangeAt('day', Date.parse('2026-03-04T15:00:00.000Z'));
    assert.equal(iso(range.to), '2026-03-04T16:00:00.000Z');
  });

  it('are labelled by the hour, and by the day where one begins', () => {
    assert.deepEqual(
      labels(rangeAt('day', NOW)).map(({ text }) => text),
      ['18:00', '4 Mar', '06:00', '12:00'],
    );
    for (const key of RANGE_KEYS) {
      const count = labels(rangeAt(key, NOW)).length;
      assert.ok(count >= 3 && count <= 6, `${count} labels of ${key}`);
    }
  });

  it('a moment is told in UTC wherever the reader is', () => {
    assert.deepEqual([utc(NOW), utc(NOW, RANGES.month.stepMs)], ['4 Mar 14:05', '4 Mar']);
  });
});
