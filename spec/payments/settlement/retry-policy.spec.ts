import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { persist } from '../../../src/payments/settlement/retry-policy.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { skippedTime } from './virtual-time.ts';

describe('a write that must not be lost', () => {
  it('is repeated until the store answers, with growing pauses', async () => {
    const time = skippedTime();
    let attempts = 0;
    const written = await persist(async () => {
      attempts += 1;
      if (attempts < 3) throw new Error('no answer');
      return { kind: 'done' as const };
    }, time);
    assert.deepEqual([written.kind, attempts], ['done', 3]);
    assert.deepEqual(time.slept, [50, 250]);
  });

  it('returns unwritten instead of throwing when the store stays silent for longer than a second', async () => {
    const time = skippedTime();
    const silence = new Error('no answer');
    let attempts = 0;
    const written = await persist(async () => {
      attempts += 1;
      throw silence;
    }, time);
    assert.deepEqual(written, { kind: 'unwritten', cause: silence, mayStand: true });
    assert.equal(attempts, 4);
    assert.deepEqual(time.slept, [50, 250, 1_000]);
  });

  it('marks what was certainly never written', async () => {
    const away = new StoreError(new Error('no connection'), false);
    const written = await persist(() => Promise.reject(away), skippedTime());
    assert.deepEqual(written, { kind: 'unwritten', cause: away, mayStand: false });
    let attempts = 0;
    const once = await persist(() => Promise.reject(attempts++ === 0 ? new StoreError('late') : away), skippedTime());
    assert.equal(once.kind === 'unwritten' && once.mayStand, true, 'one attempt that may stand is enough');
  });

  it('an answer that is no success is an answer: it is not repeated', async () => {
    const time = skippedTime();
    assert.deepEqual(await persist(async () => ({ kind: 'fenced' as const }), time), { kind: 'fenced' });
    assert.deepEqual(time.slept, []);
  });
});
