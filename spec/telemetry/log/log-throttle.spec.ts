import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LINES_A_SECOND, type ThrottleTime, throttled } from '../../../src/telemetry/log/log.ts';

/** A clock that stands until it is moved, milliseconds. */
function clock(): ThrottleTime & { advance(ms: number): void } {
  let now = 0;
  const due: { readonly at: number; readonly then: () => void }[] = [];
  return {
    now: () => now,
    after: (ms, then) => void due.push({ at: now + ms, then }),
    advance(ms) {
      now += ms;
      for (const { at, then } of due.splice(0)) at <= now ? then() : due.push({ at, then });
    },
  };
}

function begun() {
  const time = clock();
  const written: string[] = [];
  const held: (readonly [string, number])[] = [];
  const spare = throttled((kind, lines) => void held.push([kind, lines]), time);
  const write = (kind: string, times: number): void => {
    for (let i = 0; i < times; i += 1) spare(kind, () => void written.push(kind));
  };
  return { time, written, held, write };
}

describe('the throttle of log lines', () => {
  it('writes the first ten of a second, and holds the eleventh back', () => {
    const { written, write } = begun();
    write('a', LINES_A_SECOND);
    assert.equal(written.length, 10);
    write('a', 1);
    assert.equal(written.length, 10);
  });

  it('reports at the end of the second how many were held back, once', () => {
    const { time, written, held, write } = begun();
    write('a', 25);
    time.advance(999);
    assert.deepEqual(held, []);
    time.advance(1);
    assert.deepEqual(held, [['a', 15]]);
    time.advance(5_000);
    assert.deepEqual(held, [['a', 15]]);
    write('a', 1);
    assert.equal(written.length, 11);
  });

  it('reports nothing when nothing was held back', () => {
    const { time, written, held, write } = begun();
    for (let second = 0; second < 3; second += 1) {
      write('a', 10);
      time.advance(1_000);
    }
    assert.equal(written.length, 30);
    assert.deepEqual(held, []);
  });

  it('writes one kind however many lines another has', () => {
    const { time, written, held, write } = begun();
    write('a', 1_000);
    write('b', 1);
    assert.equal(written.filter((kind) => kind === 'b').length, 1);
    time.advance(1_000);
    assert.deepEqual(held, [['a', 990]]);
  });
});
