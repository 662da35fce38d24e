import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CALL_ID, calledAtMs, newCallId } from '../../src/events/call-id.ts';

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
