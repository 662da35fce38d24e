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

/** A pressure that became overloaded at 0, with so many calls in flight. */
function overloaded(inFlight = 0): OverloadDetector {
  const pressure = new OverloadDetector();
  pressure.judge(LONG, inFlight, 0);
  return pressure;
}

function calls(pressure: OverloadDetector, count: number, shed: number): void {
  for (let call = 0; call < count; call += 1) pressure.came(call < shed);
}

describe('overload', () => {
  it('begins with a long turn, and not before', () => {
    const pressure = new OverloadDetector();
    pressure.judge(SHORT, 999, 0);
    assert.equal(pressure.overloaded, false);
    pressure.judge(LONG, 0, JUDGE_MS);
    assert.equal(pressure.overloaded, true);
  });

  it('does not end because shedding has made the turns short', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100);
    pressure.judge(SHORT, 0, CALM_MS);
    assert.equal(pressure.overloaded, true);
  });

  it('ends after a while in which hardly anything was shed, and not a moment earlier', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100 * CALM_SHARE);
    pressure.judge(SHORT, 0, CALM_MS - 1);
    assert.equal(pressure.overloaded, true, 'too early');
    pressure.judge(SHORT, 0, CALM_MS);
    assert.equal(pressure.overloaded, false);
  });

  it('goes on while a little more than that is shed', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100 * CALM_SHARE + 1);
    pressure.judge(SHORT, 0, CALM_MS);
    assert.equal(pressure.overloaded, true);
  });

  it('ends when nobody comes any more', () => {
    const pressure = overloaded();
    pressure.judge(SHORT, 0, CALM_MS);
    assert.equal(pressure.overloaded, false);
  });

  it('ends when the loop had time, whatever was shed: those were bursts', () => {
    for (const [busy, lasts] of [
      [CALM_BUSY, false],
      [CALM_BUSY + 0.01, true],
    ] as const) {
      const pressure = overloaded();
      calls(pressure, 100, 100);
      for (let at = JUDGE_MS; at <= CALM_MS; at += JUDGE_MS) pressure.judge({ turnMs: 0, busy }, 0, at);
      assert.equal(pressure.overloaded, lasts, `busy ${busy}`);
    }
  });

  it('counts anew after each while', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100);
    pressure.judge(SHORT, 0, CALM_MS);
    calls(pressure, 100, 0);
    pressure.judge(SHORT, 0, 2 * CALM_MS);
    assert.equal(pressure.overloaded, false);
  });
});

describe('the limit of an overload', () => {
  const turns = (turnMs: number) => ({ turnMs, busy: 1 });

  it('begins above what is in flight, so that one long turn refuses nobody who is there', () => {
    assert.equal(overloaded().limit, FIRST_LIMIT);
    assert.equal(overloaded(FIRST_LIMIT + 1).limit, FIRST_LIMIT + 1);
  });

  it('stays where it is while nobody meets it, however long the turns', () => {
    const pressure = overloaded();
    calls(pressure, 100, 0);
    pressure.judge(turns(500), 0, JUDGE_MS);
    assert.equal(pressure.limit, FIRST_LIMIT);
    pressure.judge(turns(0.1), 0, 2 * JUDGE_MS);
    assert.equal(pressure.limit, FIRST_LIMIT);
  });

  it('falls as far as the turns are too long', () => {
    const pressure = overloaded();
    calls(pressure, 1, 1);
    pressure.judge(turns(2 * TARGET_TURN_MS), 0, JUDGE_MS);
    assert.equal(pressure.limit, FIRST_LIMIT / 2);
    pressure.judge(turns(2 * TARGET_TURN_MS), 0, 2 * JUDGE_MS);
    assert.equal(pressure.limit, FIRST_LIMIT / 2, 'nobody met it since');
  });

  it('falls by no more than a step at a time, and never below what is harmless', () => {
    const pressure = overloaded();
    calls(pressure, 1, 1);
    pressure.judge(turns(10_000), 0, JUDGE_MS);
    assert.equal(pressure.limit, FIRST_LIMIT * LOWER);
    for (let judgement = 2; judgement < 9; judgement += 1) {
      calls(pressure, 1, 1);
      pressure.judge(turns(10_000), 0, judgement * JUDGE_MS);
    }
    assert.equal(pressure.limit, HARMLESS_IN_FLIGHT);
  });

  it('rises step by step while calls meet it and the turns are short', () => {
    for (const turnMs of [0, 0.1, TARGET_TURN_MS / RAISE]) {
      const pressure = overloaded();
      calls(pressure, 1, 1);
      pressure.judge(turns(turnMs), 0, JUDGE_MS);
      assert.equal(pressure.limit, FIRST_LIMIT * RAISE, `${turnMs} ms`);
    }
  });

  it('begins anew with the next overload', () => {
    const pressure = overloaded();
    calls(pressure, 1, 1);
    pressure.judge(turns(10_000), 0, JUDGE_MS);
    pressure.judge(turns(0), 0, 2 * CALM_MS);
    pressure.judge(turns(0), 0, 4 * CALM_MS);
    assert.equal(pressure.overloaded, false);
    pressure.judge(LONG, 0, 5 * CALM_MS);
    assert.equal(pressure.limit, FIRST_LIMIT);
  });
});
