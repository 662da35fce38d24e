import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { inTime } from '../src/in-time.ts';

const DUE_MS = 50;
const late = () => 'late' as const;

describe('an answer in time', () => {
  it('is what was answered, or thrown', async () => {
    assert.equal(await inTime(Promise.resolve(1), DUE_MS, late), 1);
    await assert.rejects(inTime(Promise.reject(new Error('refused')), DUE_MS, late), /refused/);
  });

  it('is late when nothing arrives, and then what comes of it is awaited', async () => {
    const never = new Promise<never>(() => undefined);
    const start = performance.now();
    assert.equal(await inTime(never, DUE_MS, late), 'late');
    const ms = performance.now() - start;
    assert.ok(ms >= DUE_MS - 2 && ms < 20 * DUE_MS, `${ms} ms`);
    const refuse = (): never => {
      throw new Error('too late');
    };
    await assert.rejects(inTime(never, DUE_MS, refuse), /too late/);
  });

  it('a late refusal of what was given up is nobody’s unhandled rejection', async () => {
    const refused = delay(2 * DUE_MS).then(() => Promise.reject(new Error('unheard')));
    assert.equal(await inTime(refused, DUE_MS, late), 'late');
    await delay(3 * DUE_MS);
  });
});
