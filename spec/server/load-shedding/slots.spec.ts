import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSlots } from '../../../src/server/load-shedding/slots.ts';

describe('slots', () => {
  it('are free up to the last one', () => {
    const slots = createSlots(2);
    slots.take()();
    assert.equal(slots.free(), true);
    slots.take()();
    assert.deepEqual([slots.free(), slots.inFlight()], [false, 2]);
  });

  it('are given back once all holds on them have ended', () => {
    const slots = createSlots(1);
    const hold = slots.take();
    const connection = hold();
    const work = hold();
    connection();
    assert.equal(slots.free(), false);
    work();
    assert.deepEqual([slots.free(), slots.inFlight()], [true, 0]);
  });

  it('tell when one is free again', () => {
    let freed = 0;
    const slots = createSlots(1, () => {
      freed += 1;
    });
    const hold = slots.take();
    const [connection, work] = [hold(), hold()];
    connection();
    assert.equal(freed, 0);
    work();
    assert.equal(freed, 1);
  });

  it('of calls that began long ago come back, but for those whose answers go out', () => {
    let freed = 0;
    const slots = createSlots(3, () => {
      freed += 1;
    });
    let answering = true;
    const lost = slots.take()();
    slots.take(() => answering)();
    assert.equal(slots.freeLost(0), 0, 'they began later');
    const now = performance.now() + 1;
    assert.deepEqual([slots.freeLost(now), slots.inFlight(), freed], [1, 1, 1]);
    lost();
    assert.deepEqual([slots.inFlight(), freed], [1, 1], 'a slot comes back once');
    answering = false;
    assert.deepEqual([slots.freeLost(now), slots.inFlight()], [1, 0]);
  });
});
