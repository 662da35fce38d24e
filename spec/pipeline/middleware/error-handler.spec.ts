import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { errorHandler, type Failure } from '../../../src/pipeline/middleware/error-handler.ts';
import { callAt } from '../calls.ts';

const BUSY = new GatewayError('GATEWAY_BUSY');
const payment = { success: true };

/** What a call answers for what was thrown, and what the log got. */
function answered(thrown: unknown, call = callAt('received')) {
  const failures: Failure[] = [];
  const handler = errorHandler((failure) => void failures.push(failure));
  handler(thrown, {} as never, call.res, () => assert.fail('it is the last one'));
  return { failures, answer: call.written[0] };
}

describe('a call that failed', () => {
  it('is reported to the log and answered by its own response writer', () => {
    const { failures, answer } = answered(BUSY);
    assert.deepEqual([failures, answer], [[BUSY], ['GATEWAY_BUSY', {}]]);
  });

  it('by a bug is an INTERNAL_ERROR, with the bug for the log alone', () => {
    const bug = new Error('secret');
    const { failures, answer } = answered(bug);
    assert.deepEqual([failures[0]?.code, failures[0]?.cause], ['INTERNAL_ERROR', bug]);
    assert.deepEqual(answer, ['INTERNAL_ERROR', {}]);
  });

  it('for a path that cannot be decoded is an error of the input', () => {
    assert.deepEqual(answered(new URIError('%')).answer, ['INPUT_INVALID', {}]);
  });

  it('names its resource, and its events reach the feed', () => {
    const events: unknown[] = [];
    const call = callAt('prepared', { journal: { refused: (code: string) => void events.push(code) } });
    assert.deepEqual(answered(BUSY, call).answer, ['GATEWAY_BUSY', { resourceId: 'report' }]);
    assert.deepEqual(events, ['GATEWAY_BUSY']);
  });

  const FUNDED = { funding: { kind: 'paid', response: payment }, authorization: { receipt: 'used' } };
  for (const [title, call, annotations] of [
    ['may have moved money: what is known of it', callAt('proven', { annotations: { payment } }), { payment }],
    ['was paid: its payment and its mandate', callAt('funded', FUNDED), { payment, mandateReceipt: 'used' }],
  ] as const)
    it(`and ${title}`, () =>
      assert.deepEqual(answered(BUSY, call).answer, ['GATEWAY_BUSY', { resourceId: 'report', ...annotations }]));

  it('for its mandate carries the receipt of the refusal', () => {
    const refused = new GatewayError('AUTHORIZATION_INVALID', { details: { receipt: 'refusal' } });
    const context = { resourceId: 'report', mandateReceipt: 'refusal' };
    assert.deepEqual(answered(refused, callAt('proven')).answer, ['AUTHORIZATION_INVALID', context]);
  });
});
