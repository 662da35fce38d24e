import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isoTime } from '../../src/time/time.ts';

describe('a time as text', () => {
  it('is that of Date, also when another one was asked for between', () => {
    for (const ms of [0, 1_800_000_000_000, 1_800_000_000_000, 1_800_000_000_001, 0, -1])
      assert.equal(isoTime(ms), new Date(ms).toISOString());
  });
});
