import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bodyOf, type Ground, onGround, write } from './ground.ts';

const TOLD = { protocol: 'acp', operation: 'createCheckoutSession' };

/** What an operator reads, without the times. */
function told({ events }: Ground): readonly unknown[] {
  return events.map(({ type, status, data }) => [type, status, data]);
}

describe('the books of a checkout call', () => {
  it('a delivered one: requested, called, delivered, and a receipt', () =>
    onGround(async (ground) => {
      const visit = ground.open({ operation: 'createCheckoutSession' });
      const end = await write(visit);
      assert.ok(end.kind === 'answer');
      visit.delivered({ answer: end.answer, from: 'backend' });
      assert.deepEqual(told(ground), [
        ['resource.requested', undefined, TOLD],
        ['backend.called', 'ok', { ...TOLD, status: 201 }],
        ['resource.delivered', 'ok', TOLD],
      ]);
      for (const { requestId, resourceId, adapter } of ground.events)
        assert.deepEqual([requestId, resourceId, adapter], ['acp_1', 'createCheckoutSession', 'acp']);
      const [receipt, ...others] = ground.receipts;
      assert.equal(others.length, 0);
      const { id, at, deliveredAt, durationMs, ...rest } = receipt ?? assert.fail();
      assert.match(id, /^receipt_/);
      assert.deepEqual([at, Number.isInteger(durationMs)], [deliveredAt, true]);
      assert.deepEqual(rest, {
        requestId: 'acp_1',
        resourceId: 'createCheckoutSession',
        protocol: 'acp',
        delivered: true,
        backendStatus: 201,
        metadata: { operation: 'createCheckoutSession', callId: 'call_1' },
      });
    }));

  it('a repeated one: requested and delivered again, no backend and no receipt', () =>
    onGround(async (ground) => {
      const visit = ground.open({ operation: 'createCheckoutSession' });
      visit.delivered({ answer: { status: 201, body: Buffer.from('{}') }, from: 'kept' });
      assert.deepEqual(told(ground), [
        ['resource.requested', undefined, TOLD],
        ['resource.delivered', 'ok', { ...TOLD, replayed: true }],
      ]);
      assert.deepEqual(ground.receipts, []);
    }));

  it('a refused one: the merchant was called, and nothing delivered', () =>
    onGround(async (ground) => {
      ground.merchant.misbehave({ kind: 'status', status: 422, acts: false });
      const visit = ground.open({ operation: 'createCheckoutSession' });
      const end = await write(visit);
      assert.ok(end.kind === 'answer');
      visit.delivered({ answer: end.answer, from: 'backend' });
      assert.deepEqual(told(ground), [
        ['resource.requested', undefined, TOLD],
        ['backend.called', 'ok', { ...TOLD, status: 422 }],
      ]);
      assert.deepEqual(ground.receipts, []);
    }));

  it('a failed one says how, in closed words', () =>
    onGround(async (ground) => {
      ground.merchant.misbehave({ kind: 'status', status: 503, acts: false });
      await write(ground.open({ operation: 'createCheckoutSession' }));
      assert.deepEqual(told(ground).at(-1), [
        'backend.failed',
        'error',
        { ...TOLD, code: 'BACKEND_ERROR', status: 503 },
      ]);
    }));

  it('hold nothing of the caller’s or the merchant’s', () =>
    onGround(async (ground) => {
      const sessionId = await ground.session();
      const body = Buffer.from(
        '{"payment_data":{"handler_id":"card","instrument":{"type":"card","credential":{"type":"spt","token":"canary-token"}}},"buyer":{"email":"canary@shop.example"}}',
      );
      const caller = { authorization: ['Bearer canary-bearer'], signature: ['canary-signature'] };
      const visit = ground.open({
        operation: 'completeCheckoutSession',
        sessionId,
        body,
        caller,
        callerRequestId: 'canary-id',
      });
      const end = await write(visit, { backendKey: 'canary-key' });
      assert.ok(end.kind === 'answer');
      assert.equal(bodyOf(end.answer)['status'], 'completed');
      visit.delivered({ answer: end.answer, from: 'backend' });
      const books = JSON.stringify([ground.events, ground.receipts]);
      assert.doesNotMatch(books, /canary/);
      assert.ok(!books.includes(sessionId));
    }));
});
