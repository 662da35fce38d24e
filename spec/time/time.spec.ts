import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { inTime, isoTime } from '../../src/time/time.ts';
import { standStill } from '../support/stand-still.ts';

const DUE_MS = 50;
const late = () => 'late' as const;

describe('an answer in time', () => {
  it('is what was answered, or thrown', async () => {
    assert.equal(await inTime(Promise.resolve(1), DUE_MS, late), 1);
    await assert.rejects(inTime(Promise.reject(new Error('refused')), DUE_MS, late), /refused/);
  });

  it('is the result of `late` when nothing arrives in time', async () => {
    const never = new Promise<never>(() => undefined);
    const start = performance.now();
    assert.equal(await inTime(never, DUE_MS, late), 'late');
    const ms = performance.now() - start;
    // How much later depends on the machine.
    assert.ok(ms >= DUE_MS - 2, `${ms} ms`);
    const refuse = (): never => {
      throw new Error('too late');
    };
    await assert.rejects(inTime(never, DUE_MS, refuse), /too late/);
  });

  it('gets the time of a standstill again, once', async () => {
    const answer = delay(3.5 * DUE_MS).then(() => 'answer');
    const inTheEnd = inTime(answer, DUE_MS, late);
    standStill(3 * DUE_MS);
    assert.equal(await inTheEnd, 'answer');
    const slower = inTime(delay(6 * DUE_MS), DUE_MS, late);
    standStill(3 * DUE_MS);
    assert.equal(await slower, 'late');
  });

  it('shares one timer with all other waits', async () => {
    const timers = mock.method(globalThis, 'setTimeout');
    try {
      const waits = Array.from({ length: 100 }, () => Promise.withResolvers<string>());
      const answers = waits.map(({ promise }) => inTime(promise, DUE_MS, late));
      // The timer may run from the test before.
      assert.ok(timers.mock.callCount() <= 1, `${timers.mock.callCount()} timers`);
      for (const { resolve } of waits) resolve('answer');
      assert.deepEqual(new Set(await Promise.all(answers)), new Set(['answer']));
    } finally {
      timers.mock.restore();
    }
  });

  it('leaves no timer behind', async () => {
    assert.equal(await inTime(new Promise<never>(() => undefined), 1, late), 'late');
    // What runs for the last wait ends with the tick in which it finds none.
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    while (timers() > 0) await nextTurn();
  });

  it('that is refused after it was given up leaves no unhandled rejection', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    assert.equal(await inTime(promise, DUE_MS, late), 'late');
    reject(new Error('too late to be read'));
    // An unhandled rejection is reported once the microtasks are over.
    await delay(1);
  });
});

describe('a time as text', () => {
  it('is that of Date, also when another one was asked for between', () => {
    for (const ms of [0, 1_800_000_000_000, 1_800_000_000_000, 1_800_000_000_001, 0, -1])
      assert.equal(isoTime(ms), new Date(ms).toISOString());
  });
});
