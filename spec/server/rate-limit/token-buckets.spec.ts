import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createTokenBuckets, MAX_CLIENTS } from '../../../src/server/rate-limit/token-buckets.ts';
import { RecentMap } from '../../../src/time/recent-map.ts';

/** Buckets with a clock that stands until it is moved. */
function buckets(perSecond: number, burst: number, maxClients?: number) {
  let now = 0;
  const made = createTokenBuckets(
    { perSecond, burst },
    { now: () => now, ...(maxClients === undefined ? {} : { maxClients }) },
  );
  const taken = (client: string, times: number): number =>
    Array.from({ length: times }, () => made.take(client)).filter(({ granted }) => granted).length;
  return { ...made, taken, wait: (ms: number) => (now += ms) };
}

describe('a bucket of tokens', () => {
  it('grants the burst, and not one more', () => {
    assert.equal(buckets(100, 200).taken('a', 250), 200);
  });

  it('gets its tokens back at its rate, and never more than the burst', () => {
    const { taken, wait } = buckets(100, 200);
    taken('a', 200);
    for (const [ms, granted] of [
      [9, 0],
      [1, 1],
      [1_000, 100],
      [60_000, 200],
    ] as const) {
      wait(ms);
      assert.equal(taken('a', 250), granted, `after ${ms} ms more`);
    }
  });

  it('what it tells is what happens: after the wait there is a token, a moment before there is none', () => {
    for (const [perSecond, wait] of [
      [1, 1],
      [100, 1],
    ] as const) {
      const slow = buckets(perSecond, 1);
      slow.take('a');
      const refused = slow.take('a');
      assert.deepEqual([refused.granted, refused.left, refused.retryAfterS], [false, 0, wait]);
      slow.wait(wait * 1_000);
      assert.equal(slow.take('a').granted, true);
    }
    const slow = buckets(1, 10);
    slow.taken('a', 10);
    slow.wait(999);
    assert.equal(slow.take('a').granted, false);
    assert.equal(slow.take('a').fullAfterS, 10);
  });

  it('clients do not share', () => {
    const { taken } = buckets(1, 5);
    taken('a', 5);
    assert.equal(taken('b', 6), 5);
  });

  it('takes a token back, up to the burst, and forgets those of clients it does not know', () => {
    const { taken, giveBack } = buckets(1, 3);
    taken('a', 3);
    giveBack('a');
    assert.equal(taken('a', 3), 1);
    for (let times = 0; times < 9; times += 1) giveBack('a');
    assert.equal(taken('a', 9), 3);
    giveBack('nobody');
    assert.equal(taken('nobody', 9), 3);
  });

  it(`remembers ${MAX_CLIENTS} clients: a flood of others pushes out who was silent for longest`, () => {
    const { taken } = buckets(1, 1);
    taken('busy', 1);
    taken('silent', 1);
    for (let client = 0; client < MAX_CLIENTS - 2; client += 1) taken(`flood-${client}`, 1);
    assert.equal(taken('busy', 1), 0, 'all fit');
    taken('one-more', 1);
    assert.equal(taken('busy', 1), 0, 'who was used again stays');
    assert.equal(taken('silent', 1), 1, 'who was not is forgotten');
  });
});

describe('the keys of strangers', () => {
  it('are never more than the bound', () => {
    const map = new RecentMap<number>(100);
    for (let key = 0; key < 100_000; key += 1) map.add(String(key), key);
    assert.equal(map.size, 100);
    assert.deepEqual([map.use('99899'), map.use('99900')], [undefined, 99_900]);
  });

  it('cost no memory by being used', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const left = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const map = new RecentMap<number>(MAX_CLIENTS);
    for (const key of ['one', 'other']) map.add(key, 0);
    const before = left();
    for (let use = 0; use < 1_000_000; use += 1) map.use(use % 2 === 0 ? 'one' : 'other');
    const bytes = left() - before;
    assert.ok(bytes < 4_000_000, `${bytes} bytes more`);
    // The walk must still come to whoever was silent for longest.
    for (let key = 0; key < MAX_CLIENTS - 1; key += 1) map.add(String(key), key);
    assert.deepEqual([map.use('one'), map.use('other'), map.size], [undefined, 0, MAX_CLIENTS]);
  });
});
