import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CALL_ID, calledAtMs, newCallId, newId } from '../../src/events/event.ts';

describe('the id of a call', () => {
  it('is unique, has the time at which the call came in, and sorts by it', () => {
    const times = [1, 1_800_000_000_000, 1_800_000_000_001, 2 ** 48 - 1];
    const ids = times.map((ms) => newCallId(ms));
    for (const id of ids) assert.match(id, CALL_ID);
    assert.deepEqual(ids.map(calledAtMs), times);
    assert.deepEqual(ids.toSorted(), ids);
    assert.equal(new Set(Array.from({ length: 1_000 }, () => newCallId(7))).size, 1_000);
  });
});

describe('a UUIDv7', () => {
  it('has the time, the version, the variant and the random bytes behind them', () => {
    const random = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    assert.equal(newId('', 1_800_000_000_000, random), '01a3185c-5000-7677-8899-aabbccddeeff');
    // The bits of the variant replace two random ones.
    random.fill(0xff);
    assert.equal(newId('', 0, random), '00000000-0000-7fff-bfff-ffffffffffff');
  });

  it('does not repeat its random part when the pool is drawn again', () => {
    const parts = new Set(Array.from({ length: 2_000 }, () => newId('', 1).slice(14)));
    assert.equal(parts.size, 2_000);
  });
});
