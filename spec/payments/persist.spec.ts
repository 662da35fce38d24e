import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { persist } from '../../src/payments/persist.ts';

describe('a write that must not be lost', () => {
  it('is repeated until the store answers', async () => {
    let attempts = 0;
    const written = await persist(async () => {
      attempts += 1;
      if (attempts < 3) throw new Error('no answer');
      return { kind: 'done' as const };
    });
    assert.deepEqual([written.kind, attempts], ['done', 3]);
  });

  it('says so instead of throwing when the store stays silent', async () => {
    let attempts = 0;
    const written = await persist(async () => {
      attempts += 1;
      throw new Error('no answer');
    });
    assert.deepEqual([(written as { kind: string }).kind, attempts], ['unwritten', 4]);
  });
});
