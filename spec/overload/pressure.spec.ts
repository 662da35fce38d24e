import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CALM_BUSY,
  CALM_MS,
  CALM_SHARE,
  JUDGE_MS,
  OVERLOAD_JUDGEMENTS,
  OVERLOAD_TURN_MS,
  Pressure,
} from '../../src/overload/pressure.ts';

const LONG = { turnMs: OVERLOAD_TURN_MS, busy: 1 };
const SHORT = { turnMs: OVERLOAD_TURN_MS - 0.1, busy: 1 };

/** A pressure that became overloaded at 0. */
function overloaded(): Pressure {
  const pressure = new Pressure();
  for (let look = 1; look <= OVERLOAD_JUDGEMENTS; look += 1) pressure.judge(LONG, 0);
  return pressure;
}

function calls(pressure: Pressure, count: number, shed: number): void {
  for (let call = 0; call < count; call += 1) pressure.came(call < shed);
}

describe('overload', () => {
  it('begins when turns are too long for a while, and not with a burst', () => {
    const pressure = new Pressure();
    const looks = (count: number, reading: typeof LONG): boolean => {
      for (let look = 0; look < count; look += 1) pressure.judge(reading, JUDGE_MS * look);
      return pressure.overloaded;
    };
    assert.equal(looks(100, SHORT), false);
    assert.equal(looks(OVERLOAD_JUDGEMENTS - 1, LONG), false);
    assert.equal(looks(1, SHORT), false);
    assert.equal(looks(OVERLOAD_JUDGEMENTS - 1, LONG), false, 'it counts anew after a short turn');
    assert.equal(looks(1, LONG), true);
  });

  it('does not end because shedding has made the turns short', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100);
    pressure.judge(SHORT, CALM_MS);
    assert.equal(pressure.overloaded, true);
  });

  it('ends after a while in which hardly anything was shed, and not a moment earlier', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100 * CALM_SHARE);
    pressure.judge(SHORT, CALM_MS - 1);
    assert.equal(pressure.overloaded, true, 'too early');
    pressure.judge(SHORT, CALM_MS);
    assert.equal(pressure.overloaded, false);
  });

  it('goes on while a little more than that is shed', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100 * CALM_SHARE + 1);
    pressure.judge(SHORT, CALM_MS);
    assert.equal(pressure.overloaded, true);
  });

  it('ends when nobody comes any more', () => {
    const pressure = overloaded();
    pressure.judge(SHORT, CALM_MS);
    assert.equal(pressure.overloaded, false);
  });

  it('ends when the loop had time, whatever was shed: those were bursts', () => {
    for (const [busy, lasts] of [
      [CALM_BUSY, false],
      [CALM_BUSY + 0.01, true],
    ] as const) {
      const pressure = overloaded();
      calls(pressure, 100, 100);
      for (let at = JUDGE_MS; at <= CALM_MS; at += JUDGE_MS) pressure.judge({ turnMs: 0, busy }, at);
      assert.equal(pressure.overloaded, lasts, `busy ${busy}`);
    }
  });

  it('counts anew after each while', () => {
    const pressure = overloaded();
    calls(pressure, 100, 100);
    pressure.judge(SHORT, CALM_MS);
    calls(pressure, 100, 0);
    pressure.judge(SHORT, 2 * CALM_MS);
    assert.equal(pressure.overloaded, false);
  });
});
