import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLifecycle } from '../../src/sidecar/lifecycle.ts';

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

  it('gives work that does not end its time, and no more', async () => {
    const lifecycle = createLifecycle();
    lifecycle.begin();
    const at = performance.now();
    await lifecycle.drain({ ...bounds(), propagationMs: 0, finishMs: 100 });
    const took = performance.now() - at;
    assert.ok(took >= 95 && took < 2_000, `${took} ms`);
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
