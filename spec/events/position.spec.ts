import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BEGINNING, canonicalPosition, comparePositions, EVENT_ID, standingOf } from '../../src/events/page.ts';

describe('positions in the feed', () => {
  it('are ordered by their numbers, also where those are more than a double holds', () => {
    const ordered = [
      BEGINNING,
      'evt_0-1',
      'evt_0-9',
      'evt_0-10',
      'evt_9-0',
      'evt_10-0',
      'evt_1700000000000-2',
      'evt_1700000000000-11',
      'evt_9007199254740992-0',
      'evt_9007199254740993-0',
      'evt_9999999999999999-9999999999',
    ];
    for (const [i, a] of ordered.entries())
      for (const [j, b] of ordered.entries()) assert.equal(Math.sign(comparePositions(a, b)), Math.sign(i - j));
  });

  it('have one spelling', () => {
    assert.equal(canonicalPosition('evt_0017-000'), 'evt_17-0');
    assert.equal(canonicalPosition('evt_1700-10'), 'evt_1700-10');
    assert.equal(comparePositions('evt_007-00', 'evt_7-0'), 0);
  });

  it('have at most 16 and 10 digits', () => {
    assert.ok(EVENT_ID.test('evt_9999999999999999-9999999999'));
    for (const no of ['evt_10000000000000000-0', 'evt_0-10000000000', 'evt_-0', 'evt_1-', 'evt_1', '1-1', ' evt_1-1'])
      assert.ok(!EVENT_ID.test(no), no);
  });
});

describe('a position that is no entry of the ring', () => {
  const ring = { newest: 'evt_90-0', oldest: 'evt_50-0' };
  const cases: readonly (readonly [name: string, position: string, bounds: object, wanted: string])[] = [
    ['newer than the newest', 'evt_90-1', { trimmed: true }, 'ahead'],
    ['between oldest and newest', 'evt_60-0', { trimmed: true }, 'unknown'],
    ['older than the oldest', 'evt_49-0', { trimmed: true }, 'dropped'],
    ['older than the oldest, nothing was dropped', 'evt_49-0', { trimmed: false }, 'unknown'],
    ['before all', BEGINNING, { trimmed: true }, 'dropped'],
    ['everything was dropped', 'evt_89-0', { trimmed: true, oldest: undefined }, 'dropped'],
    ['everything was dropped up to it', 'evt_90-0', { trimmed: true, oldest: undefined }, 'unknown'],
    ['nothing was ever there', 'evt_1-0', { trimmed: false, newest: BEGINNING, oldest: undefined }, 'ahead'],
    ['nothing was ever there, from the beginning', BEGINNING, { newest: BEGINNING, oldest: undefined }, 'unknown'],
  ];
  for (const [name, position, bounds, wanted] of cases)
    it(`${name}: ${wanted}`, () => assert.equal(standingOf(position, { trimmed: false, ...ring, ...bounds }), wanted));
});
