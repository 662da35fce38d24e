import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { BackendError } from '../../../src/backend/exchange.ts';
import type { GatewayError } from '../../../src/errors.ts';
import type { DeliveryFacts, DeliveryRecorder, Undelivered } from '../../../src/payments/delivery/delivery-recorder.ts';
import { MAX_KEPT_BYTES } from '../../../src/payments/ledger/ledger.ts';
import type { AnsweredCall, Funding, ResponseWriter } from '../../../src/pipeline/call.ts';
import { deliver } from '../../../src/pipeline/middleware/deliver.ts';

const PAID = {
  kind: 'paid',
  record: { payId: 'p', state: 'settled', changedAt: 0, amount: '1', currency: 'X', network: 'n', payer: 'x' },
  lease: { drop: () => undefined },
  response: { success: true },
} as unknown as Funding;

/** Runs the last layer over a response writer, and gives what was written down and thrown. */
async function concluded(
  funding: Funding,
  relay: ResponseWriter['relay'],
  method = 'GET',
  bytes = '{"bought":1}',
  more: Partial<AnsweredCall> = {},
) {
  const written: (DeliveryFacts & Partial<Undelivered>)[] = [];
  const receipts: unknown[] = [];
  const events: string[] = [];
  const desk: DeliveryRecorder = {
    sending: async () => undefined,
    delivered: async (_record, facts) => void written.push(facts),
    undelivered: async (_record, facts) => void written.push(facts),
  };
  const call = {
    stage: 'answered',
    requestId: 'r',
    channel: 'mcp',
    resource: { id: 'report', backend: { method, idempotent: false, timeoutMs: 1_000 } },
    journal: { record: (type: string) => void events.push(type), flush: () => undefined },
    responseWriter: { relay },
    answer: { status: 200, headers: {}, body: Readable.from([Buffer.from(bytes)], { objectMode: false }) },
    funding,
    keptBefore: false,
    startedAt: performance.now(),
    ...more,
  } as unknown as AnsweredCall;
  const res = { locals: { call } } as unknown as Response;
  const layer = deliver(desk, { push: (receipt) => void receipts.push(receipt) });
  const thrown: unknown = await Promise.resolve(layer({} as never, res, () => undefined)).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { written, receipts, events, thrown, body: call.answer.body };
}

const readAll: ResponseWriter['relay'] = async ({ body }) => {
  for await (const _ of body);
  return { kind: 'finished' };
};

describe('how a call ends', () => {
  it('sent completely: delivered, with the answer to keep', async () => {
    const { written, thrown, events } = await concluded(PAID, readAll);
    assert.equal(thrown, undefined);
    assert.deepEqual(events, ['backend.called', 'resource.delivered']);
    assert.equal(Buffer.from(written[0]?.answer?.body ?? []).toString(), '{"bought":1}');
    assert.equal(written[0]?.failure, undefined);
  });

  it('broken off: the failure is thrown, so that a front whose head is not out can say it', async () => {
    const error = new BackendError('transport', true);
    const { written, thrown } = await concluded(PAID, async () => ({ kind: 'broken', error }));
    assert.equal((thrown as { code?: string }).code, 'BACKEND_ERROR');
    assert.equal(written[0]?.failure, 'BACKEND_ERROR');
  });

  it('a responseWriter that fails after the payment leaves nothing in flight, and the answer is kept for its buyer', async () => {
    const bug = new Error('cannot be written');
    const { written, thrown, events } = await concluded(PAID, async (answer) => {
      await readAll(answer, {});
      throw bug;
    });
    assert.equal(thrown, bug);
    assert.deepEqual(events, ['backend.called']);
    assert.equal(written[0]?.failure, 'INTERNAL_ERROR');
    assert.equal(Buffer.from(written[0]?.answer?.body ?? []).toString(), '{"bought":1}');
  });

  describe('no memory to hold the answer as a whole', () => {
    const busy: ResponseWriter['relay'] = async ({ body }) => {
      body.pause();
      return { kind: 'busy' };
    };
    const LARGE = 'x'.repeat(MAX_KEPT_BYTES + 1);

    const CASES: readonly (readonly [string, string, string | undefined, boolean, boolean])[] = [
      ['paid: read on, kept, and collected with the same proof', 'GET', undefined, true, true],
      ['paid, not to be repeated: what is kept can be collected all the same', 'POST', undefined, true, true],
      ['paid and too large to be kept: fetched once more', 'GET', LARGE, false, true],
      ['paid, too large and not to be repeated: the merchant has to be asked', 'POST', LARGE, false, false],
    ];
    for (const [title, method, bytes, kept, retryable] of CASES)
      it(title, async () => {
        const { written, thrown, events } = await concluded(PAID, busy, method, bytes);
        const error = thrown as GatewayError;
        assert.deepEqual(
          [error.code, error.retryable, error.details?.reason],
          ['BACKEND_ERROR', retryable, 'gateway_busy'],
        );
        assert.equal(error.details?.state, 'undelivered');
        assert.equal(error.details.retryUntil !== undefined, retryable);
        assert.deepEqual([written.length, written[0]?.failure], [1, 'GATEWAY_BUSY']);
        assert.equal(written[0]?.answer !== undefined, kept);
        assert.deepEqual(events, ['backend.called']);
      });

    it('free: told when to come back, and the merchant’s socket is let go', async () => {
      const { thrown, receipts, body } = await concluded({ kind: 'free' }, busy);
      const error = thrown as GatewayError;
      assert.deepEqual([error.code, error.headers['retry-after'], receipts.length], ['GATEWAY_BUSY', '1', 0]);
      assert.equal(error.retryable, true);
      assert.equal(body.destroyed, true);
    });

    it('free, under a mandate: it is used, so the same call would be refused', async () => {
      const authorization = {
        summary: { method: 'ap2' as const, reference: 'leaf', metadata: {} },
        receipt: 'receipt',
      };
      const { thrown } = await concluded({ kind: 'free' }, busy, 'GET', '{}', { authorization });
      const error = thrown as GatewayError;
      assert.deepEqual([error.code, error.retryable], ['GATEWAY_BUSY', false]);
      assert.match(error.message, /mandate/);
    });
  });

  it('a free call whose responseWriter fails has no receipt', async () => {
    const bug = new Error('cannot be written');
    const { receipts, thrown } = await concluded({ kind: 'free' }, () => Promise.reject(bug));
    assert.deepEqual([receipts, thrown], [[], bug]);
  });
});
