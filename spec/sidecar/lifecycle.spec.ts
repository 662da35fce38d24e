import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  budgetProblem,
  createFence,
  createLifecycle,
  drainLength,
  drainSeconds,
  HELD_MS,
  MOST_HELD,
} from '../../src/sidecar/lifecycle.ts';

const bounds = (closed: string[] = []) => ({
  propagationMs: 20,
  finishMs: 2_000,
  stopListening: () => void closed.push('closed'),
});

describe('the drain', () => {
  it('still serves until endpoints no longer list the pod, then closes the gate', async () => {
    const lifecycle = createLifecycle();
    assert.deepEqual([lifecycle.accepting(), lifecycle.draining()], [true, false]);
    const closed: string[] = [];
    const drained = lifecycle.drain(bounds(closed));
    assert.deepEqual([lifecycle.accepting(), lifecycle.draining(), closed], [true, true, []]);
    await drained;
    assert.deepEqual([lifecycle.accepting(), lifecycle.draining(), closed], [false, true, ['closed']]);
  });

  it('waits for work that began before', async () => {
    const lifecycle = createLifecycle();
    const end = lifecycle.begin();
    let over = false;
    const drained = lifecycle.drain(bounds()).then(() => {
      over = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 80));
    assert.equal(over, false);
    end();
    end();
    await drained;
    assert.equal(over, true);
  });

  it('calls its listeners once, before it waits for anything, and later ones at once', async () => {
    const lifecycle = createLifecycle();
    const called: string[] = [];
    lifecycle.onDraining(() => void called.push(`first, draining ${lifecycle.draining()}`));
    lifecycle.onDraining(() => void called.push('second'));
    assert.equal(called.length, 0);
    const drained = Promise.all([lifecycle.drain(bounds()), lifecycle.drain(bounds())]);
    assert.deepEqual(called, ['first, draining true', 'second']);
    lifecycle.onDraining(() => void called.push('late'));
    await drained;
    assert.deepEqual(called, ['first, draining true', 'second', 'late']);
  });

  it('runs once, however often it is started', async () => {
    const lifecycle = createLifecycle();
    const closed: string[] = [];
    await Promise.all([lifecycle.drain(bounds(closed)), lifecycle.drain(bounds(closed))]);
    assert.deepEqual(closed, ['closed']);
  });
});

describe('work that outlives its time', () => {
  it('is ended before its connection is closed, and answered between the two', async () => {
    const lifecycle = createLifecycle();
    const steps: string[] = [];
    const end = lifecycle.begin();
    await lifecycle.drain({
      ...bounds(),
      propagationMs: 0,
      finishMs: 20,
      interrupt() {
        steps.push('interrupted');
        setTimeout(() => {
          steps.push('answered');
          end();
        }, 20);
      },
      disconnect: () => void steps.push('disconnected'),
    });
    assert.deepEqual(steps, ['interrupted', 'answered', 'disconnected']);
    assert.equal(lifecycle.state(), 'drained');
  });

  it('is waited for no longer than it may take to write down how it ended', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const lifecycle = createLifecycle();
    lifecycle.begin();
    const steps: string[] = [];
    const drained = lifecycle.drain({
      ...bounds(steps),
      interrupt: () => void steps.push('interrupted'),
      disconnect: () => void steps.push('disconnected'),
    });
    const after = async (ms: number): Promise<readonly string[]> => {
      t.mock.timers.tick(ms);
      await turn();
      return [...steps, lifecycle.state()];
    };
    assert.deepEqual(await after(19), ['draining']);
    assert.deepEqual(await after(1), ['closed', 'closed']);
    assert.deepEqual(await after(1_999), ['closed', 'closed']);
    assert.deepEqual(await after(1), ['closed', 'interrupted', 'closed']);
    assert.deepEqual(await after(2_000), ['closed', 'interrupted', 'disconnected', 'closed']);
    assert.deepEqual(await after(2_000), ['closed', 'interrupted', 'disconnected', 'drained']);
    await drained;
  });

  it('is not ended where nothing runs', async () => {
    const steps: string[] = [];
    await createLifecycle().drain({
      ...bounds(),
      interrupt: () => void steps.push('interrupted'),
      disconnect: () => void steps.push('disconnected'),
    });
    assert.deepEqual(steps, ['disconnected']);
  });
});

describe('a drained process that opens again', () => {
  it('lets calls in, and drains anew with its listeners', async () => {
    const lifecycle = createLifecycle();
    let drains = 0;
    lifecycle.onDraining(() => {
      drains += 1;
    });
    const closed: string[] = [];
    await lifecycle.drain(bounds(closed));
    lifecycle.reopen();
    assert.deepEqual([lifecycle.accepting(), lifecycle.draining(), lifecycle.state()], [true, false, 'open']);
    await lifecycle.drain(bounds(closed));
    assert.deepEqual([drains, closed, lifecycle.state()], [2, ['closed', 'closed'], 'drained']);
  });
});

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

describe('the length of a drain', () => {
  it('is the time of new calls, and 30 s for what runs where nothing is sold', () => {
    assert.deepEqual(drainLength(5, 0), { propagationMs: 5_000, finishMs: 30_000 });
    assert.equal(drainSeconds(drainLength(5, 0)), 35);
  });

  it('gives the longest call a minute for its settlement', () => {
    for (const [timeoutMs, seconds] of [
      [10_000, 75],
      [120_000, 185],
      [10_001, 76],
      [1, 66],
    ] as const)
      assert.equal(drainSeconds(drainLength(5, timeoutMs)), seconds, `${timeoutMs}`);
    assert.equal(drainSeconds(drainLength(0, 10_000)), 70);
  });

  it('fits what a pod leaves for it, or says what the pod must say', () => {
    const length = drainLength(5, 10_000);
    assert.equal(budgetProblem(length, undefined), undefined);
    assert.equal(budgetProblem(length, 75), undefined);
    assert.match(budgetProblem(length, 65) ?? '', /is 65, .* 75 s; .*agent-commerce\.dev\/drain-seconds: "75"/);
  });
});
