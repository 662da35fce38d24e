import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validatorOf } from '../../../src/adapters/acp/validation/validator.ts';
import type { Operation } from '../../../src/checkouts/operations.ts';
import type { SessionStatus } from '../../support/acp/session.ts';
import { type BackendWorld, bodyOf, withBackend, write } from './with-backend.ts';

/** Reads the session back for an operation, after `before` has happened to it. */
async function readBack(
  { open, session }: BackendWorld,
  operation: Operation,
  before: (sessionId: string) => unknown = () => undefined,
): Promise<Awaited<ReturnType<NonNullable<ReturnType<BackendWorld['open']>['readBack']>>>> {
  const sessionId = await session();
  await before(sessionId);
  const read = open({ operation, sessionId }).readBack;
  assert.ok(read);
  return read();
}

describe('what the session shows of a call whose end is unknown', () => {
  it('a completed one: the order that was made, as an answer of complete', () =>
    withBackend(async (world) => {
      const { open, backend, events } = world;
      const read = await readBack(world, 'completeCheckoutSession', (sessionId) =>
        write(open({ operation: 'completeCheckoutSession', sessionId })),
      );
      assert.ok(read.kind === 'happened');
      assert.equal(read.answer.status, 200);
      assert.equal(validatorOf('strict', 'CheckoutSessionWithOrder')(bodyOf(read.answer)), undefined);
      assert.equal(backend.allOrders(), 1);
      const { type, data } = events.at(-1) ?? {};
      assert.deepEqual(
        [type, data],
        ['backend.called', { protocol: 'acp', operation: 'completeCheckoutSession', status: 200, readback: true }],
      );
    }));

  it('a canceled one, for a cancel', () =>
    withBackend(async (world) => {
      const { open } = world;
      const read = await readBack(world, 'cancelCheckoutSession', (sessionId) =>
        write(open({ operation: 'cancelCheckoutSession', sessionId })),
      );
      assert.ok(read.kind === 'happened');
      assert.equal(bodyOf(read.answer)['status'], 'canceled');
    }));

  const others: readonly (readonly [Operation, SessionStatus, string])[] = [
    ['completeCheckoutSession', 'ready_for_payment', 'not_happened'],
    ['completeCheckoutSession', 'authentication_required', 'not_happened'],
    ['completeCheckoutSession', 'canceled', 'not_happened'],
    ['completeCheckoutSession', 'in_progress', 'in_progress'],
    ['completeCheckoutSession', 'complete_in_progress', 'in_progress'],
    // It is completed, without the order that the answer needs.
    ['completeCheckoutSession', 'completed', 'unreadable'],
    ['cancelCheckoutSession', 'ready_for_payment', 'not_happened'],
    ['cancelCheckoutSession', 'completed', 'not_happened'],
    ['cancelCheckoutSession', 'in_progress', 'in_progress'],
  ];
  for (const [operation, status, kind] of others)
    it(`${status}, for ${operation}: ${kind}`, () =>
      withBackend(async (world) => {
        const read = await readBack(world, operation, (sessionId) => {
          const session = world.backend.session(sessionId);
          assert.ok(session);
          session.status = status;
        });
        assert.equal(read.kind, kind);
      }));

  it('nothing, when it cannot be read', () =>
    withBackend(
      async (world) => {
        const { backend, events } = world;
        const get = { operation: 'getCheckoutSession' } as const;
        const faults = [
          () => backend.misbehave({ kind: 'status', status: 500, acts: false }, get),
          () => backend.misbehave({ kind: 'status', status: 404, acts: false }, get),
          () => backend.misbehave({ kind: 'hang', acts: false }, get),
          () => backend.misbehave({ kind: 'answer', form: 'html' }, get),
        ];
        for (const fault of faults) {
          const read = await readBack(world, 'completeCheckoutSession', fault);
          assert.equal(read.kind, 'unreadable');
          assert.equal(events.at(-1)?.data?.['readback'], true);
        }
      },
      { timeoutMs: 200 },
    ));

  it('create and update are not read back: they run again', () =>
    withBackend(async ({ open }) => {
      assert.equal(open({ operation: 'createCheckoutSession' }).readBack, undefined);
      assert.equal(open({ operation: 'updateCheckoutSession', sessionId: 'cs_1' }).readBack, undefined);
    }));
});

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
