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
});
