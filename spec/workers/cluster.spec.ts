import assert from 'node:assert/strict';
import cluster from 'node:cluster';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { flagsOfWorker, forkWorker } from '../../src/workers/cluster.ts';

describe('the flags of a worker', () => {
  it('share the memory that the flags of the image give to old objects, and are else those of the primary', () => {
    const flags = ['--disable-proto=delete', '--max-old-space-size-percentage=60', '--max-semi-space-size=8'];
    assert.deepEqual(flagsOfWorker(flags, 4), [
      '--disable-proto=delete',
      '--max-old-space-size-percentage=15',
      '--max-semi-space-size=8',
    ]);
    assert.deepEqual(flagsOfWorker(flags, 1), flags);
    assert.deepEqual(flagsOfWorker(['--max_old_space_size_percentage=50'], 64), ['--max_old_space_size_percentage=1']);
  });
});

describe('a worker that the system does not start', () => {
  it('ends', { timeout: 5_000 }, async () => {
    cluster.setupPrimary({ cwd: join(import.meta.dirname, 'no-such-directory') });
    const worker = forkWorker(2);
    assert.deepEqual(await new Promise(worker.onEnd), { code: null, signal: null });
  });
});
