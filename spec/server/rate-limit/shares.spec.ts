import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Shares } from '../../../src/server/rate-limit/shares.ts';

describe('Shares', () => {
  const fill = (shares: Shares, client: string): number => {
    let places = 0;
    while (shares.enter(client)) places += 1;
    return places;
  };

  it('gives one client half of the places, and the next ones half of what is left', () => {
    const shares = new Shares(() => 256);
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((client) => fill(shares, client)),
      [128, 64, 32, 16],
    );
    assert.equal(shares.taken, 240);
  });

  it('gives a place back once, and to the client that held it', () => {
    const shares = new Shares(() => 4);
    assert.equal(fill(shares, 'a'), 2);
    shares.leave('b');
    assert.equal(shares.enter('a'), false);
    shares.leave('a');
    assert.equal(shares.enter('a'), true);
    shares.leave('a');
    shares.leave('a');
    shares.leave('a');
    assert.equal(shares.taken, 0);
  });
});
