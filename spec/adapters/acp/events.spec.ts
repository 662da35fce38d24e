import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BackendWorld, bodyOf, withBackend, write } from './with-backend.ts';

const DATA = { protocol: 'acp', operation: 'createCheckoutSession' };

/** What operators read, without the times. */
function eventsOf({ events }: BackendWorld): readonly unknown[] {
  return events.map(({ type, status, data }) => [type, status, data]);
}

describe('the events and the receipt of a checkout call', () => {
  it('a delivered one: requested, called, delivered, and a receipt', () =>
    withBackend(async (world) => {
      const call = world.open({ operation: 'createCheckoutSession' });
      const end = await write(call);
      assert.ok(end.kind === 'answer');
      call.delivered({ answer: end.answer, from: 'backend' });
      assert.deepEqual(eventsOf(world), [
        ['resource.requested', undefined, DATA],
        ['backend.called', 'ok', { ...DATA, status: 201 }],
        ['resource.delivered', 'ok', DATA],
      ]);
      for (const { requestId, resourceId, adapter } of world.events)
        assert.deepEqual([requestId, resourceId, adapter], ['acp_1', 'createCheckoutSession', 'acp']);
      const [receipt, ...others] = world.receipts;
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
    withBackend(async (world) => {
      const call = world.open({ operation: 'createCheckoutSession' });
      call.delivered({ answer: { status: 201, body: Buffer.from('{}') }, from: 'kept' });
      assert.deepEqual(eventsOf(world), [
        ['resource.requested', undefined, DATA],
        ['resource.delivered', 'ok', { ...DATA, replayed: true }],
      ]);
      assert.deepEqual(world.receipts, []);
    }));

  it('a refused one: the backend was called, and nothing delivered', () =>
    withBackend(async (world) => {
      world.backend.misbehave({ kind: 'status', status: 422, acts: false });
      const call = world.open({ operation: 'createCheckoutSession' });
      const end = await write(call);
      assert.ok(end.kind === 'answer');
      call.delivered({ answer: end.answer, from: 'backend' });
      assert.deepEqual(eventsOf(world), [
        ['resource.requested', undefined, DATA],
        ['backend.called', 'ok', { ...DATA, status: 422 }],
      ]);
      assert.deepEqual(world.receipts, []);
    }));

  it('a failed one has its code and its status', () =>
    withBackend(async (world) => {
      world.backend.misbehave({ kind: 'status', status: 503, acts: false });
      await write(world.open({ operation: 'createCheckoutSession' }));
      assert.deepEqual(eventsOf(world).at(-1), [
        'backend.failed',
        'error',
        { ...DATA, code: 'BACKEND_ERROR', status: 503 },
      ]);
    }));

  it('hold nothing of the caller’s or the backend’s', () =>
    withBackend(async (world) => {
      const sessionId = await world.session();
      const body = Buffer.from(
        '{"payment_data":{"handler_id":"card","instrument":{"type":"card","credential":{"type":"spt","token":"canary-token"}}},"buyer":{"email":"canary@shop.example"}}',
      );
      const caller = { authorization: ['Bearer canary-bearer'], signature: ['canary-signature'] };
      const call = world.open({
        operation: 'completeCheckoutSession',
        sessionId,
        body,
        caller,
        callerRequestId: 'canary-id',
      });
      const end = await write(call, { backendKey: 'canary-key' });
      assert.ok(end.kind === 'answer');
      assert.equal(bodyOf(end.answer)['status'], 'completed');
      call.delivered({ answer: end.answer, from: 'backend' });
      const records = JSON.stringify([world.events, world.receipts]);
      assert.doesNotMatch(records, /canary/);
      assert.ok(!records.includes(sessionId));
    }));
});
