import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Turns } from '../../../src/server/load-shedding/event-loop-lag.ts';

describe('the turns of the event loop', () => {
  it('are measured from the first call after a pause to the end of the turn', async () => {
    let now = 100;
    const turns = new Turns(() => now);
    turns.came();
    now = 107;
    turns.came();
    now = 110;
    await nextTurn();
    assert.equal(turns.take(), 10);
  });

  it('follow each other without a gap while calls come; their mean is taken', async () => {
    let now = 0;
    const turns = new Turns(() => now);
    turns.came();
    now = 10;
    await nextTurn();
    now = 13;
    turns.came();
    now = 30;
    await nextTurn();
    assert.equal(turns.take(), 15);
  });

  it('count once', async () => {
    let now = 0;
    const turns = new Turns(() => now);
    turns.came();
    now = 10;
    await nextTurn();
    turns.take();
    assert.equal(turns.take(), 0);
  });

  it('do not count without calls', async () => {
    let now = 0;
    const turns = new Turns(() => now);
    turns.came();
    now = 2;
    await nextTurn();
    now = 500;
    await nextTurn();
    await nextTurn();
    turns.take();
    now = 900;
    turns.came();
    now = 904;
    await nextTurn();
    assert.equal(turns.take(), 4);
  });
});
