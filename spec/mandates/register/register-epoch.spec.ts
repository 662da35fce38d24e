import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finishUses, reserveUses } from '../../../src/mandates/register.ts';
import { AT, claimOf, mapRows, useOf } from './register-map.ts';

/** The store's clock, milliseconds: years away from the clock that mandates are checked with. */
const NOW = 1_900_000_000_000;
const BORN = NOW - 10_000;
const first = () => mapRows({ born: BORN, openFrom: 0 });
const afterLoss = () => mapRows({ born: BORN, openFrom: BORN });
const aged = (age: number | undefined, openAge?: number | undefined) =>
  claimOf(undefined, { age, open: [{ ...useOf('o', {}), age: openAge }] });

describe('a register at its start', () => {
  it('refuses checkouts from before, to the millisecond, and leaves everything as it was', () => {
    const rows = first();
    assert.equal(reserveUses(rows, claimOf('a', { age: 10.001 }), NOW), 'replayed');
    assert.equal(reserveUses(rows, claimOf('a', { age: 10.0001 }), NOW), 'replayed');
    assert.deepEqual([rows.onceIds.size, rows.states.size], [0, 0]);
    assert.equal(reserveUses(rows, claimOf('a', { age: 10 }), NOW), undefined);
    assert.equal(reserveUses(rows, claimOf('b', { age: -5 }), NOW), undefined);
  });

  it('does not use the clock that mandates are checked with', () => {
    const rows = first();
    assert.equal(reserveUses(rows, claimOf('a', { at: 5, age: 11 }), NOW), 'replayed');
    assert.equal(reserveUses(rows, claimOf('a', { at: 5, age: 9 }), NOW), undefined);
  });

  it('refuses a checkout of unknown age', () => {
    assert.equal(reserveUses(first(), claimOf('a', { age: undefined }), NOW), 'replayed');
    assert.equal(reserveUses(mapRows(), claimOf('a', { age: undefined }), NOW), undefined);
  });

  it('for the first time, accepts open mandates that are older', () => {
    for (const age of [3_600, undefined]) assert.equal(reserveUses(first(), aged(1, age), NOW), undefined);
  });

  it('after a loss, refuses open mandates from before for as long as they live, and accepts later ones', () => {
    const rows = afterLoss();
    for (const age of [10.001, 3_600, undefined])
      assert.equal(reserveUses(rows, aged(1, age), NOW), 'open_mandate_spent', `${age}`);
    const days = 30 * 86_400;
    assert.equal(reserveUses(rows, aged(1, days + 11), NOW + days * 1_000), 'open_mandate_spent');
    assert.equal(rows.states.size, 0);
    assert.equal(reserveUses(rows, aged(1, 10), NOW), undefined);
  });

  it('after a loss, refuses a chain one of whose open mandates is older', () => {
    const open = [
      { ...useOf('new', {}), age: 1 },
      { ...useOf('old', {}), age: 11 },
    ];
    assert.equal(reserveUses(afterLoss(), claimOf(undefined, { open }), NOW), 'open_mandate_spent');
  });
});

describe('a register that is found empty, epoch and all', () => {
  it('accepts nothing made before, and remembers uses from then on', () => {
    const rows = mapRows(null);
    const used = aged(0, 0);
    assert.equal(reserveUses(rows, used, NOW), 'replayed');
    assert.deepEqual(rows.epoch(), { born: NOW, openFrom: NOW });
    assert.deepEqual([rows.onceIds.size, rows.states.size], [0, 0]);
    assert.equal(reserveUses(rows, { ...used, age: 1.001 }, NOW + 1_000), 'replayed');
    assert.equal(reserveUses(rows, aged(1, 1.001), NOW + 1_000), 'open_mandate_spent');
    assert.equal(reserveUses(rows, aged(1, 1), NOW + 1_000), undefined);
  });

  it('ends uses that it forgot without a trace', () => {
    const rows = mapRows(null);
    for (const how of ['commit', 'release'] as const)
      finishUses(rows, claimOf(undefined, { at: AT, open: [useOf('o')] }), how, NOW);
    assert.deepEqual([rows.onceIds.size, rows.states.size, rows.epoch()], [0, 0, undefined]);
  });
});
