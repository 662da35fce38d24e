import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { BackendError } from '../../../src/backend/backend-exchange.ts';
import type { DeliveryFacts, DeliveryRecorder, Undelivered } from '../../../src/payments/delivery/delivery-recorder.ts';
import { MAX_KEPT_BYTES } from '../../../src/payments/ledger/ledger.ts';
import type { AnsweredCall, Funding, ResponseWriter } from '../../../src/pipeline/call.ts';
import { deliver } from '../../../src/pipeline/middleware/deliver.ts';
import { callAt, passed, RESOURCE } from '../calls.ts';

const PAID = {
  kind: 'paid',
  record: { payId: 'p', state: 'settled', changedAt: 0, amount: '1', currency: 'X', network: 'n', payer: 'x' },
  lease: { drop: () => undefined },
  response: { success: true },
} as unknown as Funding;

/** Delivers an answer through a relay, and gives what was recorded and thrown. */
async function delivered(
  funding: Funding,
  relay: ResponseWriter['relay'],
  {
    method = 'GET',
    bytes = '{"bought":1}',
    ...more
  }: { method?: string; bytes?: string; authorization?: object; keptBefore?: boolean } = {},
) {
  const written: (DeliveryFacts & Partial<Undelivered>)[] = [];
  const receipts: unknown[] = [];
  const deliveries: DeliveryRecorder = {
    sending: async () => true,
    delivered: async (_record, facts) => void written.push(facts),
    undelivered: async (_record, facts) => void written.push(facts),
  };
  const call = callAt('answered', {
    resource: { ...RESOURCE, backend: { ...RESOURCE.backend, method } },
    responseWriter: { relay },
    answer: { status: 200, headers: {}, body: Readable.from([Buffer.from(bytes)], { objectMode: false }) },
    funding,
    keptBefore: false,
    ...more,
  });
  const { error } = await passed(deliver(deliveries, { push: (receipt) => void receipts.push(receipt) }), call.res);
  return { written, receipts, events: call.types(), error, body: call.call<AnsweredCall>().answer.body };
}

const readAll: ResponseWriter['relay'] = async ({ body }) => {
  for await (const _ of body);
  return { kind: 'finished' };
};
const BUG = new Error('cannot be written');
const textOf = (facts: DeliveryFacts | undefined) => Buffer.from(facts?.answer?.body ?? []).toString();

describe('how a call ends', () => {
  it('sent completely: delivered, with the answer to keep', async () => {
    const { written, error, events } = await delivered(PAID, readAll);
    assert.deepEqual([error, events], [undefined, ['backend.called', 'resource.delivered']]);
    assert.deepEqual([textOf(written[0]), written[0]?.failure], ['{"bought":1}', undefined]);
  });

  it('sent from what was kept before: the call of the backend is not recorded again', async () => {
    const { written, events } = await delivered(PAID, readAll, { keptBefore: true });
    assert.deepEqual([written[0]?.keptBefore, textOf(written[0])], [true, '{"bought":1}']);
    assert.deepEqual(events, ['resource.delivered']);
    assert.equal((await delivered(PAID, readAll)).written[0]?.keptBefore, false);
  });

  it('kept before, and its client leaves: undelivered, and still kept', async () => {
    const { written, events } = await delivered(PAID, async () => ({ kind: 'client_gone' }), { keptBefore: true });
    assert.deepEqual([written[0]?.keptBefore, written[0]?.failure, events], [true, { code: 'client_gone' }, []]);
  });

  it('broken off: the failure is thrown, for an adapter that has not sent its head', async () => {
    const broken = { kind: 'broken', error: new BackendError('transport', true) } as const;
    const { written, error } = await delivered(PAID, async () => broken);
    assert.deepEqual([error?.code, written[0]?.failure?.code], ['BACKEND_ERROR', 'reset']);
  });

  it('by a bug of the response writer after the payment: undelivered, and the answer is kept', async () => {
    const { written, error, events } = await delivered(PAID, async (answer) => {
      await readAll(answer, {});
      throw BUG;
    });
    assert.deepEqual([error, events], [BUG, ['backend.called']]);
    assert.deepEqual([written[0]?.failure?.code, textOf(written[0])], ['internal_error', '{"bought":1}']);
  });

  it('by a bug of the response writer of a free call: without a receipt', async () => {
    const { receipts, error } = await delivered({ kind: 'free' }, () => Promise.reject(BUG));
    assert.deepEqual([receipts, error], [[], BUG]);
  });
});

describe('an answer for which there is no memory', () => {
  const busy: ResponseWriter['relay'] = async ({ body }) => {
    body.pause();
    return { kind: 'busy' };
  };
  const LARGE = 'x'.repeat(MAX_KEPT_BYTES + 1);

  const CASES: readonly (readonly [string, { method: string; bytes?: string }, kept: boolean, retryable: boolean])[] = [
    ['paid: read on, kept, and collected with the same proof', { method: 'GET' }, true, true],
    ['paid, not to be repeated: what is kept can be collected', { method: 'POST' }, true, true],
    ['paid and too large to be kept: fetched once more', { method: 'GET', bytes: LARGE }, false, true],
    ['paid, too large and not to be repeated: lost', { method: 'POST', bytes: LARGE }, false, false],
  ];
  for (const [title, request, kept, retryable] of CASES)
    it(title, async () => {
      const { written, error, events } = await delivered(PAID, busy, request);
      assert.deepEqual(
        [error?.code, error?.retryable, error?.details?.reason, error?.details?.state],
        ['BACKEND_ERROR', retryable, 'gateway_busy', 'undelivered'],
      );
      assert.equal(error?.details?.retryUntil !== undefined, retryable);
      assert.deepEqual([written.length, written[0]?.failure?.code], [1, 'gateway_busy']);
      assert.equal(written[0]?.answer !== undefined, kept);
      assert.deepEqual(events, ['backend.called']);
    });

  it('free: when to come back, and the connection to the backend is free', async () => {
    const { error, receipts, body } = await delivered({ kind: 'free' }, busy);
    assert.deepEqual([error?.code, error?.headers['retry-after'], receipts.length], ['GATEWAY_BUSY', '1', 0]);
    assert.deepEqual([error?.retryable, body.destroyed], [true, true]);
  });

  it('free, under a mandate: that is used, so the same call would be refused', async () => {
    const authorization = { summary: { method: 'ap2', reference: 'leaf', metadata: {} }, receipt: 'receipt' };
    const { error } = await delivered({ kind: 'free' }, busy, { authorization });
    assert.deepEqual([error?.code, error?.retryable], ['GATEWAY_BUSY', false]);
    assert.match(error?.message ?? '', /mandate/);
  });
});
