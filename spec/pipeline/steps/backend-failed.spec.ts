import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { failureCode, Undeliverable } from '../../../src/backend/exchange.ts';
import type { WorkFailure } from '../../../src/payments/settlement/settlement-request.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { failedUnpaid } from '../../../src/pipeline/middleware/forward.ts';
import { proven } from '../calls.ts';

describe('a call that was not paid, because its backend did not answer first', () => {
  const failures: readonly (readonly [
    what: string,
    failure: WorkFailure,
    code: string,
    details: object,
    retryable: boolean,
  ])[] = [
    ['failed with 500', { status: 500, requestWritten: true }, 'BACKEND_ERROR', { reason: 'backend_5xx' }, true],
    ['knows nothing of it', { status: 404, requestWritten: true }, 'BACKEND_ERROR', { reason: 'backend_4xx' }, false],
    [
      'sends elsewhere',
      { status: 307, reason: 'redirect_not_followed', requestWritten: true },
      'BACKEND_ERROR',
      { reason: 'redirect_not_followed' },
      false,
    ],
    [
      'was silent',
      { status: 0, reason: 'timeout', requestWritten: true },
      'BACKEND_TIMEOUT',
      { reason: 'timeout', timeoutMs: 1_000 },
      true,
    ],
    [
      'was not reached',
      { status: 0, reason: 'unreachable', requestWritten: false },
      'BACKEND_ERROR',
      { reason: 'transport' },
      true,
    ],
    [
      'answered more than can be kept',
      { status: 0, reason: 'response_too_large', requestWritten: true },
      'BACKEND_ERROR',
      { reason: 'response_too_large' },
      false,
    ],
  ];
  for (const [what, failure, code, details, retryable] of failures)
    it(`${what}: ${code}, ${retryable ? '' : 'not '}to be tried again, and no word of a payment that was taken`, () => {
      const { call, types, events } = proven();
      const cause = new Error('why');
      const error = failedUnpaid(call<ProvenCall>(), { ...failure, cause });
      assert.deepEqual([error.code, error.details, error.retryable], [code, details, retryable]);
      assert.ok(error.cause instanceof Undeliverable && error.cause.cause === cause);
      assert.equal(error.cause.code, failureCode(failure), 'the log has what the caller is not told');
      assert.match(error.message, /no payment was taken/);
      assert.deepEqual(types(), ['backend.failed']);
      // The event has the status itself, the caller its class.
      const { timeoutMs: _own, ...told } = details as { readonly timeoutMs?: number; readonly reason?: string };
      const { status } = failure;
      const ofClass = told.reason?.startsWith('backend_') === true;
      assert.deepEqual(events()[0]?.data, {
        code,
        ...(status === 0 ? {} : { status }),
        ...(ofClass ? {} : told),
      });
    });
});
