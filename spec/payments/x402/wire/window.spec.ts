import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { invalidWindow, leastSecondsToPay, tooLate } from '../../../../src/payments/x402/wire/window.ts';

const NOW = 1_800_000_000;
const MAX_TIMEOUT_SECONDS = 120;
const TOO_EARLY = 'invalid_exact_evm_payload_authorization_valid_after';
const TOO_LATE = 'invalid_exact_evm_payload_authorization_valid_before';

describe('the window of an authorization', () => {
  /** What is wrong with one that begins and ends so many seconds from now. */
  const fault = (from: number, to: number, leastSeconds?: number, pastMs = 0) =>
    invalidWindow(
      { validAfter: String(NOW + from), validBefore: String(NOW + to) },
      MAX_TIMEOUT_SECONDS,
      NOW * 1_000 + pastMs,
      leastSeconds,
    )?.reason;

  it('may begin 5 s after now, and no later', () => {
    assert.deepEqual([fault(5, 100), fault(6, 100)], [undefined, TOO_EARLY]);
  });

  it('has at least 6 s left, or as many as are needed', () => {
    assert.deepEqual([fault(0, 6), fault(0, 5)], [undefined, TOO_LATE]);
    assert.deepEqual([fault(0, 80, 80), fault(0, 79, 80)], [undefined, TOO_LATE]);
  });

  it('ends at most 600 s after what was offered', () => {
    assert.deepEqual([fault(0, 720), fault(0, 721)], [undefined, TOO_LATE]);
  });

  it('is compared in whole seconds, in favour of the buyer', () => {
    assert.equal(fault(0, 6, undefined, 999), undefined);
  });

  it('of numbers beyond 2^53 is compared all the same', () => {
    const validBefore = (2n ** 256n - 1n).toString();
    assert.deepEqual(invalidWindow({ validAfter: '0', validBefore }, MAX_TIMEOUT_SECONDS, NOW * 1_000), {
      reason: TOO_LATE,
      fault: 'validBefore is too far away: it must be 1800000006 to 1800000720, 6 s to 720 s from now',
    });
  });
});

describe('what must be left where the backend answers first', () => {
  it('is its time, in whole seconds, and 70 s to settle', () => {
    assert.deepEqual([0, 1, 1_000, 1_001, 10_000].map(leastSecondsToPay), [70, 71, 71, 72, 80]);
  });
});

describe('a reservation on the clock of the store', () => {
  it('is too late with less than 6 s left', () => {
    const reservedAt = NOW * 1_000 + 999;
    assert.deepEqual(
      [6, 5].map((left) => tooLate({ reservedAt, validBefore: NOW + left })),
      [undefined, TOO_LATE],
    );
  });

  it('is too late with less left than the checks of its proof ask for', () => {
    assert.deepEqual(
      [80, 79].map((left) => tooLate({ reservedAt: NOW * 1_000 + 999, validBefore: NOW + left }, 80)),
      [undefined, TOO_LATE],
    );
  });
});
