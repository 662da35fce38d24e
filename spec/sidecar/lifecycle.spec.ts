import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLifecycle } from '../../src/sidecar/lifecycle.ts';

const bounds = (closed: string[] = []) => ({
  propagationMs: 20,
  finishMs: 2_000,
  stopListening: () => void closed.push('closed'),
});

describe('the drain', () => {
  it('serves on while endpoints forget the pod, then closes the gate', async () => {
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

  it('gives up on work that does not end', async () => {
    const lifecycle = createLifecycle();
    lifecycle.begin();
    await lifecycle.drain({ ...bounds(), finishMs: 30 });
  });

  it('tells once when it begins, before anything is waited for, and whoever asks later at once', async () => {
    const lifecycle = createLifecycle();
    const told: string[] = [];
    lifecycle.onDraining(() => void told.push(`first, draining ${lifecycle.draining()}`));
    lifecycle.onDraining(() => void told.push('second'));
    assert.equal(told.length, 0);
    const drained = Promise.all([lifecycle.drain(bounds()), lifecycle.drain(bounds())]);
    assert.deepEqual(told, ['first, draining true', 'second']);
    lifecycle.onDraining(() => void told.push('late'));
    await drained;
    assert.deepEqual(told, ['first, draining true', 'second', 'late']);
  });

  it('is one drain however often it is asked for', async () => {
    const lifecycle = createLifecycle();
    const closed: string[] = [];
    await Promise.all([lifecycle.drain(bounds(closed)), lifecycle.drain(bounds(closed))]);
    assert.deepEqual(closed, ['closed']);
  });
});
