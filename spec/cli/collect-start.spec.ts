import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { collectStart } from '../../src/cli/serve.ts';

const GARBAGE_OBJECTS = 400_000;

describe('the collection after a start', () => {
  it('gives the memory of garbage back, and leaves no function behind that collects', () => {
    let garbage: unknown[] | undefined = Array.from({ length: GARBAGE_OBJECTS }, (_, at) => ({ at }));
    const full = process.memoryUsage().heapTotal;
    assert.ok(garbage.length > 0);
    garbage = undefined;
    collectStart();
    assert.ok(process.memoryUsage().heapTotal < full - 5_000_000);
    assert.equal('gc' in globalThis, false);
  });
});
