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
