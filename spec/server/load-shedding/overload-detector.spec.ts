import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CALM_BUSY,
  CALM_MS,
  CALM_SHARE,
  FIRST_LIMIT,
  HARMLESS_IN_FLIGHT,
  JUDGE_MS,
  LOWER,
  OVERLOAD_TURN_MS,
  OverloadDetector,
  RAISE,
  TARGET_TURN_MS,
} from '../../../src/server/load-shedding/overload-detector.ts';

const LONG = { turnMs: OVERLOAD_TURN_MS, busy: 1 };
const SHORT = { turnMs: OVERLOAD_TURN_MS - 0.1, busy: 1 };

/** A detector that became overloaded at 0, with so many calls in flight. */
function overloaded(inFlight = 0): OverloadDetector {
  const detector = new OverloadDetector();
  detector.judge(LONG, inFlight, 0);
  return detector;
}

function calls(detector: OverloadDetector, count: number, shed: number): void {
  for (let call = 0; call < count; call += 1) detector.came(call < shed);
}

describe('overload', () => {
  it('begins with a long turn, and not before', () => {
    const detector = new OverloadDetector();
    detector.judge(SHORT, 999, 0);
    assert.equal(detector.overloaded, false);
    detector.judge(LONG, 0, JUDGE_MS);
    assert.equal(detector.overloaded, true);
  });

  it('does not end because shedding has made the turns short', () => {
    const detector = overloaded();
    calls(detector, 100, 100);
    detector.judge(SHORT, 0, CALM_MS);
    assert.equal(detector.overloaded, true);
  });

  it('ends after CALM_MS in which hardly anything was shed, and not earlier', () => {
    const detector = overloaded();
    calls(detector, 100, 100 * CALM_SHARE);
    detector.judge(SHORT, 0, CALM_MS - 1);
    assert.equal(detector.overloaded, true, 'too early');
    detector.judge(SHORT, 0, CALM_MS);
    assert.equal(detector.overloaded, false);
  });

  it('lasts while a little more than that is shed', () => {
    const detector = overloaded();
    calls(detector, 100, 100 * CALM_SHARE + 1);
    detector.judge(SHORT, 0, CALM_MS);
    assert.equal(detector.overloaded, true);
  });

  it('ends when no calls come any more', () => {
    const detector = overloaded();
    detector.judge(SHORT, 0, CALM_MS);
    assert.equal(detector.overloaded, false);
  });

  it('ends when the loop had spare time, whatever was shed: those were bursts', () => {
    for (const [busy, lasts] of [
      [CALM_BUSY, false],
      [CALM_BUSY + 0.01, true],
    ] as const) {
      const detector = overloaded();
      calls(detector, 100, 100);
      for (let at = JUDGE_MS; at <= CALM_MS; at += JUDGE_MS) detector.judge({ turnMs: 0, busy }, 0, at);
      assert.equal(detector.overloaded, lasts, `busy ${busy}`);
    }
  });

  it('counts anew after each CALM_MS', () => {
    const detector = overloaded();
    calls(detector, 100, 100);
    detector.judge(SHORT, 0, CALM_MS);
    calls(detector, 100, 0);
    detector.judge(SHORT, 0, 2 * CALM_MS);
    assert.equal(detector.overloaded, false);
  });
});

describe('the limit of an overload', () => {
  const turns = (turnMs: number) => ({ turnMs, busy: 1 });

  it('begins at no less than what is in flight, so that one long turn refuses no call', () => {
    assert.equal(overloaded().limit, FIRST_LIMIT);
    assert.equal(overloaded(FIRST_LIMIT + 1).limit, FIRST_LIMIT + 1);
  });

  it('does not change while no call reaches it, however long the turns', () => {
    const detector = overloaded();
    calls(detector, 100, 0);
    detector.judge(turns(500), 0, JUDGE_MS);
    assert.equal(detector.limit, FIRST_LIMIT);
    detector.judge(turns(0.1), 0, 2 * JUDGE_MS);
    assert.equal(detector.limit, FIRST_LIMIT);
  });

  it('falls as far as the turns are too long', () => {
    const detector = overloaded();
    calls(detector, 1, 1);
    detector.judge(turns(2 * TARGET_TURN_MS), 0, JUDGE_MS);
    assert.equal(detector.limit, FIRST_LIMIT / 2);
    detector.judge(turns(2 * TARGET_TURN_MS), 0, 2 * JUDGE_MS);
    assert.equal(detector.limit, FIRST_LIMIT / 2, 'no call reached it since');
  });

  it('falls by no more than a step at a time, and never below what is harmless', () => {
    const detector = overloaded();
    calls(detector, 1, 1);
    detector.judge(turns(10_000), 0, JUDGE_MS);
    assert.equal(detector.limit, FIRST_LIMIT * LOWER);
    for (let judgement = 2; judgement < 9; judgement += 1) {
      calls(detector, 1, 1);
      detector.judge(turns(10_000), 0, judgement * JUDGE_MS);
    }
    assert.equal(detector.limit, HARMLESS_IN_FLIGHT);
  });

  it('rises step by step while calls reach it and the turns are short', () => {
    for (const turnMs of [0, 0.1, TARGET_TURN_MS / RAISE]) {
      const detector = overloaded();
      calls(detector, 1, 1);
      detector.judge(turns(turnMs), 0, JUDGE_MS);
      assert.equal(detector.limit, FIRST_LIMIT * RAISE, `${turnMs} ms`);
    }
  });

  it('begins anew with the next overload', () => {
    const detector = overloaded();
    calls(detector, 1, 1);
    detector.judge(turns(10_000), 0, JUDGE_MS);
    detector.judge(turns(0), 0, 2 * CALM_MS);
    detector.judge(turns(0), 0, 4 * CALM_MS);
    assert.equal(detector.overloaded, false);
    detector.judge(LONG, 0, 5 * CALM_MS);
    assert.equal(detector.limit, FIRST_LIMIT);
  });
});
