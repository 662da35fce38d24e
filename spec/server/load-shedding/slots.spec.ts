import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSlots } from '../../../src/server/load-shedding/slots.ts';

describe('places', () => {
  it('are free up to the last one', () => {
    const places = createSlots(2);
    places.take()();
    assert.equal(places.free(), true);
    places.take()();
    assert.deepEqual([places.free(), places.inFlight()], [false, 2]);
  });

  it('are given back once everything that holds them has ended', () => {
    const places = createSlots(1);
    const hold = places.take();
    const connection = hold();
    const work = hold();
    connection();
    assert.equal(places.free(), false);
    work();
    assert.deepEqual([places.free(), places.inFlight()], [true, 0]);
  });
});
