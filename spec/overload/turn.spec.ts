import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Turn } from '../../src/overload/turn.ts';

describe('a turn of the event loop', () => {
  it('began with the first question after a pause', () => {
    let now = 100;
    const turn = new Turn(() => now);
    assert.equal(turn.elapsed(), 0);
    now = 107;
    assert.equal(turn.elapsed(), 7);
    assert.equal(turn.number, 1);
  });

  it('follows the one before where that ended, not where somebody first asks', async () => {
    let now = 0;
    const turn = new Turn(() => now);
    turn.elapsed();
    now = 10;
    await nextTurn();
    now = 13;
    assert.equal(turn.elapsed(), 3);
    assert.equal(turn.number, 2);
  });

  it('is not followed while nobody asks', async () => {
    let now = 0;
    const turn = new Turn(() => now);
    turn.elapsed();
    await nextTurn();
    await nextTurn();
    await nextTurn();
    now = 50;
    assert.equal(turn.elapsed(), 0);
  });
});
