import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  countFailedAttempts,
  createTokenBuckets,
  MAX_CLIENTS,
  MAX_FAILED_ATTEMPTS,
} from '../../../src/server/limits/rates.ts';

/** Buckets with a clock that the test moves. */
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

  it('names the wait after which there is a token, and not earlier', () => {
    for (const perSecond of [1, 100]) {
      const slow = buckets(perSecond, 1);
      slow.take('a');
      const { granted, left, retryAfterS } = slow.take('a');
      assert.deepEqual([granted, left, retryAfterS], [false, 0, 1]);
      slow.wait(1_000);
      assert.equal(slow.take('a').granted, true);
    }
    const slow = buckets(1, 10);
    slow.taken('a', 10);
    slow.wait(999);
    assert.equal(slow.take('a').granted, false);
    assert.equal(slow.take('a').fullAfterS, 10);
  });

  it('belongs to one client', () => {
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
    giveBack('unknown');
    assert.equal(taken('unknown', 9), 3);
  });

  it(`is kept for ${MAX_CLIENTS} clients: others replace the one that made no call for longest`, () => {
    const { taken } = buckets(1, 1);
    taken('busy', 1);
    taken('silent', 1);
    for (let client = 0; client < MAX_CLIENTS - 2; client += 1) taken(`flood-${client}`, 1);
    assert.equal(taken('busy', 1), 0, 'all fit');
    taken('one-more', 1);
    assert.equal(taken('busy', 1), 0, 'a client that called again stays');
    assert.equal(taken('silent', 1), 1, 'the other one is dropped');
  });
});

describe('failed attempts', () => {
  it(`count up to ${MAX_FAILED_ATTEMPTS} a minute; the next one must wait until the first is a minute old`, () => {
    let now = 5_000;
    const { note } = countFailedAttempts({ now: () => now });
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) {
      assert.equal(note('a'), undefined);
      now += 1_000;
    }
    assert.equal(note('a'), 50);
    assert.equal(note('b'), undefined, 'another client has its own count');
    now += 49_999;
    assert.equal(note('a'), 1, 'a refused attempt does not count');
    now += 1;
    assert.equal(note('a'), undefined);
    assert.equal(note('a'), 1, 'the second attempt is less than a minute old');
    now += 60_000;
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) assert.equal(note('a'), undefined);
    assert.equal(note('a'), 60);
  });

  it('of more clients than are remembered cost no more memory', () => {
    const { note } = countFailedAttempts({ maxClients: 2, now: () => 0 });
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) note('a');
    assert.equal(note('a'), 60);
    note('b');
    note('c');
    assert.equal(note('a'), undefined, 'pushed out');
  });
});
