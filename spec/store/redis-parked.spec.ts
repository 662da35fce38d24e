import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { redisBed } from './redis-bed.ts';

const HOUR_MS = 3_600_000;
const TAG = '{acg:shop}:';

const bed = redisBed();

describe('parked calls in Redis', () => {
  it('go by themselves with the last of them, whoever asks', async () => {
    const left = () => Promise.all(['parked', 'parked:ends'].map((key) => bed.redis.pttl(`${TAG}${key}`)));
    const near = (actual: number, wanted: number) =>
      assert.ok(actual > wanted - 10_000 && actual <= wanted, `${actual} ms`);
    await bed.store.parked.park('long', 'call', 2 * HOUR_MS);
    await bed.store.parked.park('short', 'call', HOUR_MS);
    for (const ms of await left()) near(ms, 2 * HOUR_MS);
    await bed.store.parked.take('long');
    await bed.store.parked.park('shorter', 'call', HOUR_MS / 2);
    for (const ms of await left()) near(ms, HOUR_MS);
  });

  it('leave with the next one that is parked once their time is over, also when nobody asks for them', async () => {
    await bed.store.parked.park('over', 'call', HOUR_MS);
    await bed.redis.zadd(`${TAG}parked:ends`, 1, 'over');
    await bed.store.parked.park('next', 'call', HOUR_MS);
    assert.equal(await bed.redis.hget(`${TAG}parked`, 'over'), null);
    assert.equal(await bed.redis.zscore(`${TAG}parked:ends`, 'over'), null);
  });

  it('stay for their taker for five seconds, never longer than they were parked for', async () => {
    const ends = async (name: string) => Number(await bed.redis.zscore(`${TAG}parked:ends`, name)) - Date.now();
    for (const [name, forMs, most] of [
      ['taken', HOUR_MS, 5_000],
      ['ending', 3_000, 3_000],
    ] as const) {
      await bed.store.parked.park(name, 'call', forMs);
      await bed.store.parked.take(name);
      const left = await ends(name);
      assert.ok(left > most - 2_000 && left <= most, `${left} ms`);
    }
  });
});
