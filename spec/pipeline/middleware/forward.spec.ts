import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { BackendError, type Exchange } from '../../../src/backend/exchange.ts';
import type { GatewayError } from '../../../src/errors.ts';
import type { DeliveryRecorder } from '../../../src/payments/delivery/delivery-recorder.ts';
import { annotationsOfFunded, type FundedCall } from '../../../src/pipeline/call.ts';
import { forward } from '../../../src/pipeline/middleware/forward.ts';
import { free } from './mandate-desk.ts';

const ANSWER = { status: 200, headers: {}, body: Readable.from([]) };

/** Sends a free call with a mandate on, and gives what became of the mandate. */
async function forwarded(exchange: Exchange) {
  const finished: string[] = [];
  const summary = { method: 'ap2', reference: 'leaf', metadata: {} } as const;
  const finish = async (how: string) => void finished.push(how);
  const { res, call } = free({
    authorization: { summary, receipt: 'receipt', finish },
    request: { method: 'GET', path: '/', headers: {}, body: undefined },
    responseWriter: { maxAnswerBytes: 1_000 },
    trace: { traceparent: undefined, tracestate: undefined },
    resource: {
      id: 'report',
      backend: { method: 'GET', timeoutMs: 1_000, maxResponseBytes: 1_000, relayStatuses: [] },
    },
  });
  const layer = forward(exchange, {} as DeliveryRecorder);
  const thrown: unknown = await Promise.resolve(layer({} as never, res, () => undefined)).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { finished, thrown: thrown as GatewayError | undefined, said: annotationsOfFunded(call() as FundedCall) };
}

describe('a free call that failed may be sent again as it was', () => {
  const failures: readonly (readonly [string, Exchange, boolean])[] = [
    ['not when its mandate is used: the answer was a failure', async () => ({ ...ANSWER, status: 500 }), false],
    ['not when its mandate is used: in time or not', () => Promise.reject(new BackendError('timeout', true)), false],
    ['when it never left', () => Promise.reject(new BackendError('unreachable', false)), true],
    ['when it never left in time', () => Promise.reject(new BackendError('timeout', false)), true],
  ];
  for (const [rule, exchange, retryable] of failures)
    it(rule, async () => {
      const { thrown } = await forwarded(exchange);
      assert.equal(thrown?.retryable, retryable);
      assert.equal(/mandate/.test(thrown.message), !retryable, 'whoever tries again learns what it takes');
    });
});

describe('the mandate of a free call, when it is sent to the merchant', () => {
  it('answered: used', async () => {
    const { finished, thrown, said } = await forwarded(async () => ANSWER);
    assert.deepEqual([finished, thrown, said], [['commit'], undefined, { mandateReceipt: 'receipt' }]);
  });

  it('answered with a failure: used all the same', async () => {
    const { finished, thrown, said } = await forwarded(async () => ({ ...ANSWER, status: 500 }));
    assert.deepEqual([finished, said], [['commit'], { mandateReceipt: 'receipt' }]);
    assert.equal(thrown?.code, 'BACKEND_ERROR');
  });

  it('broken off after the request may have left: used', async () => {
    const { finished, said } = await forwarded(() => Promise.reject(new BackendError('transport', true)));
    assert.deepEqual([finished, said], [['commit'], { mandateReceipt: 'receipt' }]);
  });

  it('certainly never left: as good as before, and no receipt says otherwise', async () => {
    const { finished, thrown, said } = await forwarded(() => Promise.reject(new BackendError('unreachable', false)));
    assert.deepEqual([finished, said], [['release'], {}]);
    assert.equal(thrown?.code, 'BACKEND_ERROR');
  });
});
