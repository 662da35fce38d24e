import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecentMap } from '../../src/time/recent-map.ts';
import { liveBytes } from '../support/live-bytes.ts';

const KEYS = 10_000;

describe('a map of recent keys', () => {
  it('never has more keys than its bound', () => {
    const map = new RecentMap<number>(100);
    for (let key = 0; key < 100_000; key += 1) map.add(String(key), key);
    assert.equal(map.size, 100);
    assert.deepEqual([map.use('99899'), map.use('99900')], [undefined, 99_900]);
  });

  it('has the last value of a key that is added again, which counts as used then', () => {
    const map = new RecentMap<number>(2);
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['a', 3],
      ['c', 4],
    ] as const)
      map.add(key, value);
    assert.deepEqual([map.use('a'), map.use('b'), map.use('c')], [3, undefined, 4]);
  });

  it('takes no more memory by being used', () => {
    const map = new RecentMap<number>(KEYS);
    for (const key of ['one', 'other']) map.add(key, 0);
    const before = liveBytes();
    for (let use = 0; use < 1_000_000; use += 1) map.use(use % 2 === 0 ? 'one' : 'other');
    const bytes = liveBytes() - before;
    assert.ok(bytes < 4_000_000, `${bytes} bytes more`);
    // The walk must still reach the key that was not used for longest.
    for (let key = 0; key < KEYS - 1; key += 1) map.add(String(key), key);
    assert.deepEqual([map.use('one'), map.use('other'), map.size], [undefined, 0, KEYS]);
  });
});
