import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { BackendError, type Exchange } from '../../../src/backend/exchange.ts';
import type { DeliveryRecorder } from '../../../src/payments/delivery/delivery-recorder.ts';
import { annotationsOfFunded, type FundedCall } from '../../../src/pipeline/call.ts';
import { forward } from '../../../src/pipeline/middleware/forward.ts';
import { callAt, free, passed } from '../calls.ts';

const ANSWER = { status: 200, headers: {}, body: Readable.from([]) };
const failing = (error: BackendError) => () => Promise.reject(error);

/** Sends a free call with a mandate, and gives what became of the mandate. */
async function forwarded(exchange: Exchange) {
  const finished: string[] = [];
  const summary = { method: 'ap2', reference: 'leaf', metadata: {} } as const;
  const finish = async (how: string) => void finished.push(how);
  const call = free({ authorization: { summary, receipt: 'receipt', finish } });
  const { error } = await passed(forward(exchange, {} as DeliveryRecorder), call.res);
  return { finished, error, annotations: annotationsOfFunded(call.call<FundedCall>()) };
}

const USED = { mandateReceipt: 'receipt' };
/** `retryable` is undefined where the call did not fail. */
const FREE: readonly (readonly [string, Exchange, end: string, object, retryable: boolean | undefined])[] = [
  ['answered: used', async () => ANSWER, 'commit', USED, undefined],
  ['answered with a failure: used', async () => ({ ...ANSWER, status: 500 }), 'commit', USED, false],
  [
    'broken off when the request may have left: used',
    failing(new BackendError('transport', true)),
    'commit',
    USED,
    false,
  ],
  ['too late when the request may have left: used', failing(new BackendError('timeout', true)), 'commit', USED, false],
  [
    'certainly never left: released, without a receipt',
    failing(new BackendError('unreachable', false)),
    'release',
    {},
    true,
  ],
  ['never left in time: released, without a receipt', failing(new BackendError('timeout', false)), 'release', {}, true],
];

describe('the mandate of a free call that is forwarded', () => {
  for (const [title, exchange, end, annotations, retryable] of FREE)
    it(title, async () => {
      const sent = await forwarded(exchange);
      assert.deepEqual([sent.finished, sent.annotations], [[end], annotations]);
      assert.equal(sent.error?.retryable, retryable);
      if (sent.error !== undefined)
        assert.equal(/mandate/.test(sent.error.message), !retryable, 'a retry needs another mandate');
    });
});

describe('a paid call that is forwarded', () => {
  const record = { payId: 'p', state: 'settled', changedAt: 0, payer: '0xpayer', receiptId: 'receipt' };
  const paid = (held?: { readonly exchange: Exchange }) =>
    callAt('funded', { funding: { kind: 'paid', record, lease: { drop: () => undefined }, held } });

  it('goes over the connection that was held for it, under a key that stays the same, and outlives its caller', async () => {
    const call = paid({
      exchange: async ({ headers }, limits) => {
        assert.match(headers['idempotency-key'] ?? '', /^pay_/);
        assert.equal(limits.signal, undefined);
        return ANSWER;
      },
    });
    const other = () => assert.fail('another connection');
    const { went } = await passed(forward(other, {} as DeliveryRecorder), call.res);
    assert.deepEqual([went, call.call().stage], [true, 'answered']);
  });

  for (const [title, exchange, requestWritten] of [
    ['answered with a failure', async () => ({ ...ANSWER, status: 404 }), true],
    ['never sent', failing(new BackendError('unreachable', false)), false],
  ] as const)
    it(`${title}: undelivered, and BACKEND_ERROR`, async () => {
      const written: unknown[] = [];
      const deliveries = {
        undelivered: async (_record: object, facts: { requestWritten: boolean }) => written.push(facts.requestWritten),
      } as unknown as DeliveryRecorder;
      const { error } = await passed(forward(exchange, deliveries), paid().res);
      assert.deepEqual([error?.code, error?.retryable, written], ['BACKEND_ERROR', true, [requestWritten]]);
    });

  it('with a kept answer is not sent again', async () => {
    const sent = () => assert.fail('sent');
    assert.equal((await passed(forward(sent, {} as DeliveryRecorder), callAt('answered').res)).went, true);
  });
});

describe('a call in place that is forwarded', () => {
  const inPlace = { url: undefined, callerHeaders: {}, conditions: { 'if-none-match': '"1"', range: 'bytes=0-1' } };
  const request = { method: 'GET', path: '/', headers: {}, callerHeaders: { cookie: 'a=b' }, body: undefined };
  const answered = async (status: number, more: object) => {
    const seen: Readonly<Record<string, string>>[] = [];
    const exchange: Exchange = async ({ headers }) => {
      seen.push(headers);
      return { ...ANSWER, status };
    };
    const call = callAt('funded', { request, ...more });
    const { went, error } = await passed(forward(exchange, undelivered), call.res);
    return { went, code: error?.code, headers: seen[0] ?? {} };
  };
  const undelivered = { undelivered: async () => undefined } as unknown as DeliveryRecorder;
  const record = { payId: 'p', state: 'settled', changedAt: 0, payer: '0xpayer', receiptId: 'receipt' };
  const paid = { funding: { kind: 'paid', record, lease: { drop: () => undefined }, held: undefined } };
  const unpaid = { funding: { kind: 'free' } };

  it('free: takes its preconditions along, and their outcomes are delivered', async () => {
    const { went, headers } = await answered(304, { ...unpaid, inPlace });
    assert.deepEqual(
      [went, headers['if-none-match'], headers['range'], headers['cookie']],
      [true, '"1"', 'bytes=0-1', 'a=b'],
    );
  });

  it('free, without preconditions: 304 is a failure of the backend', async () => {
    const { went, code } = await answered(304, { ...unpaid, inPlace: { ...inPlace, conditions: {} } });
    assert.deepEqual([went, code], [false, 'BACKEND_ERROR']);
  });

  it('paid: has no preconditions, whatever came', async () => {
    const { went, code, headers } = await answered(304, { ...paid, inPlace });
    assert.deepEqual(
      [went, code, headers['if-none-match'], headers['range'], headers['cookie']],
      [false, 'BACKEND_ERROR', undefined, undefined, 'a=b'],
    );
  });
});
