import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { MAX_CLAIMED_CALLS } from '../../src/payments/parked-calls.ts';
import { redisBed } from './redis-bed.ts';

const HOUR_MS = 3_600_000;
/** Longest that a test may need until it looks, milliseconds. */
const SLOW_MS = 10_000;
const KEY = '{acg:shop}:parked';
/** More than Lua can unpack at once. */
const RUSH = 10_000;

const bed = redisBed();

type Ends = 'waiting' | 'claimed';

/** When a call ends, milliseconds from now; undefined when it is not among those. */
async function endOf(ends: Ends, name: string): Promise<number | undefined> {
  const score = await bed.redis.zscore(`${KEY}:${ends}`, name);
  return score === null ? undefined : Number(score) - Date.now();
}

function near(actual: number | undefined, wanted: number): void {
  assert.ok(actual !== undefined && actual > wanted - SLOW_MS && actual <= wanted, `${actual} ms, not ${wanted}`);
}

describe('parked calls in Redis', () => {
  beforeEach(() => bed.redis.flushall());

  it('go by themselves, all keys with the last call, whoever asks', async () => {
    const { park, claim, release } = bed.store.parked;
    const keysLive = async (wanted: number) => {
      const keys = await bed.redis.keys(`${KEY}*`);
      assert.ok(keys.includes(KEY));
      for (const key of keys) near(await bed.redis.pttl(key), wanted);
    };
    await park('long', 'call', 2 * HOUR_MS);
    await park('short', 'call', HOUR_MS);
    await keysLive(2 * HOUR_MS);
    await claim('long', 'buyer', 3 * HOUR_MS);
    await keysLive(3 * HOUR_MS);
    await claim('short', 'buyer', 4 * HOUR_MS);
    await release('short', 'buyer', 5 * HOUR_MS);
    await keysLive(5 * HOUR_MS);
    await claim('short', 'buyer', HOUR_MS);
    await release('long', 'buyer', HOUR_MS / 2);
    await keysLive(HOUR_MS);
  });

  it('have one end, and the one of what they are: waiting or claimed', async () => {
    const { park, claim, release } = bed.store.parked;
    for (const claimedMs of [2 * HOUR_MS, HOUR_MS / 2]) {
      await park('call', 'call', HOUR_MS);
      near(await endOf('waiting', 'call'), HOUR_MS);
      await claim('call', 'buyer', claimedMs);
      assert.equal(await endOf('waiting', 'call'), undefined);
      near(await endOf('claimed', 'call'), claimedMs);
      await release('call', 'buyer', HOUR_MS / 4);
      assert.equal(await endOf('claimed', 'call'), undefined);
      near(await endOf('waiting', 'call'), HOUR_MS / 4);
    }
  });

  it('keep the end of the first claim and of the first release, however often they are repeated', async () => {
    const { park, claim, release } = bed.store.parked;
    await park('call', 'call', HOUR_MS);
    await claim('call', 'buyer', HOUR_MS);
    await claim('call', 'buyer', 2 * HOUR_MS);
    await claim('call', 'other', 2 * HOUR_MS);
    near(await endOf('claimed', 'call'), HOUR_MS);
    await park('other', 'call', HOUR_MS);
    await claim('other', 'buyer', HOUR_MS);
    await release('other', 'buyer', HOUR_MS);
    await release('other', 'buyer', 2 * HOUR_MS);
    near(await endOf('waiting', 'other'), HOUR_MS);
  });

  it('are refused when as many are claimed as may: an authorization that was spent claims for nothing', async () => {
    const { park, claim } = bed.store.parked;
    const names = Array.from({ length: MAX_CLAIMED_CALLS - 1 }, (_, i) => `claimed-${i}`);
    await bed.redis.hset(KEY, ...names.flatMap((name) => [name, 'buyer\ncall']));
    await bed.redis.zadd(`${KEY}:claimed`, ...names.flatMap((name) => [Date.now() + HOUR_MS, name]));
    assert.equal(await park('last', 'call', HOUR_MS), true);
    assert.equal((await claim('last', 'buyer', HOUR_MS)).kind, 'yours');
    assert.equal(await park('one-more', 'call', HOUR_MS), false);
  });

  for (const [command, ask] of [
    ['park', () => bed.store.parked.park('next', 'call', HOUR_MS)],
    ['claim', () => bed.store.parked.claim('next', 'buyer', HOUR_MS)],
    ['release', () => bed.store.parked.release('next', 'buyer', HOUR_MS)],
  ] as const)
    it(`leave with any next ${command} once their time is over, waiting or claimed, also after a rush`, async () => {
      const { redis } = bed;
      for (const ends of ['waiting', 'claimed']) {
        const names = Array.from({ length: RUSH }, (_, i) => `${ends}-${i}`);
        await redis.hset(KEY, ...names.flatMap((name) => [name, '\ncall']), `${ends}-kept`, '\ncall');
        await redis.zadd(`${KEY}:${ends}`, ...names.flatMap((name) => [1, name]), Date.now() + HOUR_MS, `${ends}-kept`);
      }
      await ask();
      const left = (await redis.hkeys(KEY)).filter((name) => name !== 'next');
      assert.deepEqual(left.sort(), ['claimed-kept', 'waiting-kept']);
      for (const ends of ['waiting', 'claimed'])
        assert.equal(await redis.zcount(`${KEY}:${ends}`, '-inf', Date.now()), 0);
    });

  it('are measured by the clock of Redis, whatever the clock of the pod says', async (t) => {
    t.mock.method(Date, 'now', () => 0);
    const [seconds] = await bed.redis.time();
    await bed.store.parked.park('call', 'call', HOUR_MS);
    await bed.store.parked.claim('call', 'buyer', HOUR_MS);
    const claimedFor = ((await endOf('claimed', 'call')) ?? 0) - Number(seconds) * 1_000;
    assert.ok(claimedFor >= HOUR_MS && claimedFor < HOUR_MS + SLOW_MS, `${claimedFor} ms`);
  });
});
