import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createFailedPayers,
  FAILED_PAYER_PAUSE_MS,
  FAILED_PAYERS,
} from '../../../../src/payments/x402/local/local-rail.ts';

describe('payers whose transfer has failed', () => {
  it('pause from their last failure on, however their address is spelled', () => {
    let now = 0;
    const failed = createFailedPayers(() => now);
    failed.add('0xAb');
    now = 10;
    failed.add('0xaB');
    for (const [at, pauses] of [
      [FAILED_PAYER_PAUSE_MS + 9, true],
      [FAILED_PAYER_PAUSE_MS + 10, false],
    ] as const) {
      now = at;
      assert.equal(failed.has('0xAB'), pauses);
    }
    assert.equal(failed.has('0xcd'), false);
  });

  it('are remembered up to a bound, the latest of them', () => {
    const failed = createFailedPayers(() => 0);
    failed.add('again');
    for (let n = 1; n < FAILED_PAYERS; n += 1) failed.add(`payer ${n}`);
    failed.add('again');
    failed.add('one more');
    assert.deepEqual([failed.has('again'), failed.has('payer 1'), failed.has('payer 2')], [true, false, true]);
  });
});
