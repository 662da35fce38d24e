import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BUSY,
  InFlightLimit,
  JUDGE_MS,
  LEAST_IN_FLIGHT,
  LONG_TURN_MS,
  LOWER,
  MOST_RAISE,
  RAISE,
  STUCK,
} from '../../../src/server/load-shedding/in-flight-limit.ts';

const SHORT = { turnMs: LONG_TURN_MS, busy: 1 };
const IN_FLIGHT = 400;

/** A limit whose process has worked for so large a share of the time for long. */
function after(busy: number): InFlightLimit {
  const limit = new InFlightLimit();
  for (let judgement = 0; judgement < 500; judgement += 1) limit.judge({ turnMs: 1, busy });
  return limit;
}

/** A limit that has fallen once, from IN_FLIGHT calls. */
function fallen(busy = 1): InFlightLimit {
  const limit = after(busy);
  limit.allows(IN_FLIGHT);
  limit.judge({ turnMs: 2 * LONG_TURN_MS, busy });
  return limit;
}

function end(limit: InFlightLimit, calls: number): void {
  for (let call = 0; call < calls; call += 1) limit.ended();
}

describe('the limit on calls in flight', () => {
  it('is none while turns are short, whatever is in flight', () => {
    const limit = after(1);
    limit.judge(SHORT);
    assert.equal(limit.allows(1_000_000), true);
  });

  it('is none while the loop has time left: its long turns are bursts', () => {
    assert.equal(fallen(BUSY).calls, Number.POSITIVE_INFINITY);
    assert.equal(fallen(BUSY + 0.01).calls, IN_FLIGHT / 2);
  });

  it('falls from what was in flight, as far as the turns are too long', () => {
    const limit = fallen();
    assert.equal(limit.calls, IN_FLIGHT / 2);
    assert.equal(limit.allows(IN_FLIGHT / 2 - 1), true);
    assert.equal(limit.allows(IN_FLIGHT / 2), false);
  });

  it('falls by no more than a step at a time', () => {
    const limit = after(1);
    limit.allows(IN_FLIGHT);
    limit.judge({ turnMs: 1_000 * LONG_TURN_MS, busy: 1 });
    assert.equal(limit.calls, IN_FLIGHT * LOWER);
  });

  it('falls again only when the calls in flight at the last fall have ended', () => {
    const limit = fallen();
    const stillLong = (): void => {
      limit.allows(IN_FLIGHT);
      limit.judge({ turnMs: 2 * LONG_TURN_MS, busy: 1 });
    };
    end(limit, IN_FLIGHT - 1);
    stillLong();
    assert.equal(limit.calls, IN_FLIGHT / 2);
    end(limit, 1);
    stillLong();
    assert.equal(limit.calls, IN_FLIGHT / 4);
  });

  it('never falls below what keeps a core busy', () => {
    const limit = fallen();
    for (let fall = 0; fall < 9; fall += 1) {
      end(limit, IN_FLIGHT);
      limit.allows(IN_FLIGHT);
      limit.judge({ turnMs: 1_000 * LONG_TURN_MS, busy: 1 });
    }
    assert.equal(limit.calls, LEAST_IN_FLIGHT);
  });

  it('is soon far above the least where slow calls hold it, none ends, and the loop has nothing to do', () => {
    const limit = after(1);
    limit.allows(LEAST_IN_FLIGHT);
    limit.judge({ turnMs: 2 * LONG_TURN_MS, busy: 1 });
    assert.equal(limit.calls, LEAST_IN_FLIGHT);
    for (let ms = 0; ms < 2_000; ms += JUDGE_MS) {
      limit.allows(1_000);
      limit.judge({ turnMs: 1, busy: 0.02 });
    }
    assert.ok(limit.calls > 400, `${limit.calls}`);
  });

  it('does not rise while no call waits for it', () => {
    const limit = fallen();
    limit.allows(1);
    end(limit, IN_FLIGHT);
    limit.judge(SHORT);
    assert.equal(limit.calls, IN_FLIGHT / 2);
  });

  it('rises by a small step while calls wait for it and the loop works all the time', () => {
    const limit = fallen();
    limit.allows(IN_FLIGHT);
    end(limit, IN_FLIGHT);
    limit.judge(SHORT);
    assert.equal(limit.calls, (IN_FLIGHT / 2) * RAISE);
  });

  it('rises by a large one where the loop has time left as calls end, and by a small one while none does', () => {
    for (const [ended, factor] of [
      [IN_FLIGHT, MOST_RAISE],
      [IN_FLIGHT / 4, 1 + (MOST_RAISE - 1) / 2],
      [0, RAISE],
    ] as const) {
      const limit = fallen();
      for (let judgement = 0; judgement < 500; judgement += 1) limit.judge({ turnMs: 1, busy: 0.1 });
      limit.allows(IN_FLIGHT);
      end(limit, ended);
      limit.judge({ turnMs: 1, busy: 0.1 });
      assert.equal(limit.calls, (IN_FLIGHT / 2) * factor, `${ended} ended`);
    }
  });

  it('rises by small steps when no call in flight ends for long, however busy the loop is', () => {
    const limit = fallen();
    for (let judgement = 1; judgement < STUCK; judgement += 1) {
      limit.allows(IN_FLIGHT);
      limit.judge(SHORT);
      assert.equal(limit.calls, IN_FLIGHT / 2);
    }
    limit.allows(IN_FLIGHT);
    limit.judge(SHORT);
    assert.equal(limit.calls, (IN_FLIGHT / 2) * RAISE);
  });
});
