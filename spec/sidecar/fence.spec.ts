import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createFence, HELD_MS, MOST_HELD } from '../../src/sidecar/lifecycle.ts';

describe('the fence of a backend that restarts', () => {
  it('is no obstacle while it is down', async () => {
    const fence = createFence();
    assert.deepEqual(
      [fence.state(), fence.up(), fence.backendStays(), await fence.pass()],
      ['down', false, true, true],
    );
    assert.deepEqual(fence.facts(), { held: 0, wentOn: 0, refused: 0 });
  });

  it('holds calls until it is lowered, in their order', async () => {
    const fence = createFence();
    fence.raise();
    const passed: string[] = [];
    const calls = ['first', 'second'].map((name) => fence.pass().then((passes) => passed.push(`${name} ${passes}`)));
    await turn();
    assert.deepEqual([passed, fence.facts().held], [[], 2]);
    fence.lower();
    await Promise.all(calls);
    assert.deepEqual(passed, ['first true', 'second true']);
    assert.deepEqual(fence.facts(), { held: 0, wentOn: 2, refused: 0 });
  });

  it('refuses a call that it held for two seconds', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const fence = createFence();
    fence.raise();
    let passes: boolean | undefined;
    const call = fence.pass().then((passed) => {
      passes = passed;
    });
    t.mock.timers.tick(HELD_MS - 1);
    await turn();
    assert.equal(passes, undefined);
    t.mock.timers.tick(1);
    await call;
    assert.equal(passes, false);
    assert.deepEqual(fence.facts(), { held: 0, wentOn: 0, refused: 1 });
  });

  it('holds no more calls than it may, and refuses others at once', async () => {
    const fence = createFence();
    fence.raise();
    const held = Array.from({ length: MOST_HELD }, () => fence.pass());
    assert.equal(await fence.pass(), false);
    assert.deepEqual(fence.facts(), { held: MOST_HELD, wentOn: 0, refused: 1 });
    fence.lower();
    assert.ok((await Promise.all(held)).every((passes) => passes));
  });

  it('keeps the settlement gate open until the backend may end', () => {
    const fence = createFence();
    fence.raise();
    assert.deepEqual([fence.up(), fence.backendStays()], [true, true], 'what runs may be paid');
    fence.release();
    fence.raise();
    assert.deepEqual([fence.state(), fence.up(), fence.backendStays()], ['released', true, false]);
    fence.lower();
    assert.deepEqual([fence.up(), fence.backendStays()], [false, true]);
  });
});
