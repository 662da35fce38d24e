import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { a2aResponseWriter } from '../../../src/adapters/a2a/response-writer.ts';
import { newTask } from '../../../src/adapters/a2a/task.ts';
import { type BackendAnswer, BackendError, type BackendFailure } from '../../../src/backend/types.ts';
import { createAnswerBudget } from '../../../src/server/load-shedding/answer-budget.ts';

/** An answer that ends with a failure after its first bytes. */
function brokenAnswer(reason: BackendFailure): BackendAnswer {
  const body = new PassThrough();
  body.write('{"half":');
  queueMicrotask(() => body.destroy(new BackendError(reason, true)));
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
}

const NEW = { waiting: false, open: false, taken: () => assert.fail('no task waits') } as const;

describe('the relay of an answer that breaks off', () => {
  // Whatever is touched of the response shows as a failure: nothing may have been sent.
  const untouched = new Proxy({}, { get: (_, name) => assert.fail(`res.${String(name)}`) }) as Response;
  const budget = createAnswerBudget(1_048_576);
  const call = { id: 1, requestId: 'r', resourceId: 'cities', task: newTask(), ...NEW };

  for (const reason of ['transport', 'timeout', 'response_too_large'] as const)
    it(`${reason}: broken, and nothing was sent`, async () => {
      const relayed = await a2aResponseWriter(untouched, call, budget).relay(brokenAnswer(reason), {});
      assert.equal(relayed.kind === 'broken' && relayed.error.reason, reason);
    });

  it('ended by ourselves because the caller left: no failure of the merchant', async () => {
    assert.deepEqual(await a2aResponseWriter(untouched, call, budget).relay(brokenAnswer('aborted'), {}), {
      kind: 'client_gone',
    });
  });
});
