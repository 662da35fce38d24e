import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { flagsOfWorker } from '../../src/workers/cluster.ts';

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
