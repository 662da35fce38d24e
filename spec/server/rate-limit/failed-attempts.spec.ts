import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countFailedAttempts, MAX_FAILED_ATTEMPTS } from '../../../src/server/rate-limit/failed-attempts.ts';

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
