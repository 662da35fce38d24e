import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRepeatable } from '../../src/resources/resource.ts';

describe('an operation that may be asked for twice', () => {
  for (const method of ['GET', 'PUT', 'DELETE'] as const)
    it(`is every ${method}`, () => {
      assert.equal(isRepeatable({ method, idempotent: false }), true);
    });

  for (const method of ['POST', 'PATCH'] as const)
    it(`is a ${method} only where the merchant says so`, () => {
      assert.deepEqual(
        [false, true].map((idempotent) => isRepeatable({ method, idempotent })),
        [false, true],
      );
    });
});
