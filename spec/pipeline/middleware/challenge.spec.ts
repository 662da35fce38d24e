import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FundedCall } from '../../../src/pipeline/call.ts';
import { challenge } from '../../../src/pipeline/middleware/challenge.ts';
import { ACCEPTED, callAt, passed, RESOURCE, SELLING, scriptedMandates } from '../calls.ts';

const { mandates, asked } = scriptedMandates(ACCEPTED);

/** How a call leaves the middleware, and what was answered. */
async function challenged(more: object) {
  const call = callAt('prepared', more);
  const { went, error } = await passed(challenge(SELLING, mandates), call.res);
  return { went, error, call: call.call(), written: call.written, types: call.types() };
}

describe('the challenge of a call', () => {
  it('a free call is funded without it, whatever it brought', async () => {
    const resource = { ...RESOURCE, pricing: { type: 'free' } };
    const { went, call } = await challenged({ resource, proof: { kind: 'conflicting' } });
    assert.deepEqual([went, call.stage, (call as FundedCall).funding], [true, 'funded', { kind: 'free' }]);
  });

  it('a paid call without a proof gets the 402, and its mandate is not checked', async () => {
    const { went, written, types } = await challenged({ proof: { kind: 'none' } });
    assert.deepEqual([went, written, types], [false, [['402', 'fresh', undefined]], ['payment.required']]);
    assert.deepEqual(asked, []);
  });

  it('a call without an input gets a 402 that is for any, without a checkout', async () => {
    const resource = { ...RESOURCE, authorization: ['ap2'] };
    const call = callAt('resolved', { resource, proof: { kind: 'none' } });
    const { went } = await passed(challenge(SELLING, mandates), call.res);
    assert.deepEqual([went, call.written, call.types()], [false, [['402', 'fresh', undefined]], ['payment.required']]);
  });

  for (const kind of ['header', 'illegible'] as const)
    it(`a proof that is ${kind} is left to the verification`, async () => {
      const { went, written, call } = await challenged({ proof: { kind, value: 'proof' } });
      assert.deepEqual([went, written, call.stage], [true, [], 'prepared']);
    });

  it('two different proofs are an error of the input', async () => {
    const { went, error, written } = await challenged({ proof: { kind: 'conflicting' } });
    assert.deepEqual([went, error?.code, error?.details?.reason], [false, 'INPUT_INVALID', 'payment_proofs_differ']);
    assert.deepEqual(written, []);
  });

  it('a collecting call passes without an offer', async () => {
    const resource = { ...RESOURCE, id: 'removed' };
    const { went, call } = await challenged({ resource, collecting: { agreed: {} } });
    assert.deepEqual([went, call.stage], [true, 'prepared']);
  });
});
