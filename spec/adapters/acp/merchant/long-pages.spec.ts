import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BackendCall } from '../../../../src/adapters/acp/call.ts';
import { type Ground, onGround, write } from './ground.ts';

/** Declared as longer than any document may be. */
const PAGE = { message: 'x'.repeat(300_000) };

async function refuse({ merchant, open }: Ground, status: number): ReturnType<BackendCall['attempt']> {
  merchant.misbehave({ kind: 'status', status, acts: false, document: PAGE });
  return write(open({ operation: 'completeCheckoutSession', sessionId: 'cs_1' }));
}

describe('a refusal of the merchant on a page that is too long', () => {
  for (const status of [404, 409, 422])
    it(`${status} is a refusal all the same`, () =>
      onGround(async (ground) => {
        const end = await refuse(ground, status);
        assert.ok(end.kind === 'answer');
        assert.equal(end.answer.status, status);
      }));

  for (const status of [401, 429])
    it(`${status} turned the gateway away: nothing happened`, () =>
      onGround(async (ground) => {
        assert.equal((await refuse(ground, status)).kind, 'not_executed');
      }));

  it('503 stays unknown by its status, and a success by its document', () =>
    onGround(async (ground) => {
      for (const [status, why] of [
        [503, 'status'],
        [200, 'invalid_document'],
      ] as const) {
        const end = await refuse(ground, status);
        assert.ok(end.kind === 'unknown');
        assert.equal(end.why, why);
      }
    }));
});
