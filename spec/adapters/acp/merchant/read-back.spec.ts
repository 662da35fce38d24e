import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Operation } from '../../../../src/checkouts/operations.ts';
import type { SessionStatus } from '../../../support/acp/session.ts';
import { bodyOf, type Ground, onGround, write } from './ground.ts';

/** Reads the session back for an operation, after `before` has happened to it. */
async function readBack(
  { open, session }: Ground,
  operation: Operation,
  before: (sessionId: string) => unknown = () => undefined,
): Promise<Awaited<ReturnType<NonNullable<ReturnType<Ground['open']>['readBack']>>>> {
  const sessionId = await session();
  await before(sessionId);
  const read = open({ operation, sessionId }).readBack;
  assert.ok(read);
  return read();
}

describe('what the session tells of a call whose end is unknown', () => {
  it('a completed one: the order that was made, as an answer of complete', () =>
    onGround(async (ground) => {
      const { open, merchant, events } = ground;
      const read = await readBack(ground, 'completeCheckoutSession', (sessionId) =>
        write(open({ operation: 'completeCheckoutSession', sessionId })),
      );
      assert.ok(read.kind === 'happened');
      assert.equal(read.answer.status, 200);
      assert.equal(validatorOf('strict', 'CheckoutSessionWithOrder')(bodyOf(read.answer)), undefined);
      assert.equal(merchant.allOrders(), 1);
      const { type, data } = events.at(-1) ?? {};
      assert.deepEqual(
        [type, data],
        ['backend.called', { protocol: 'acp', operation: 'completeCheckoutSession', status: 200, readback: true }],
      );
    }));

  it('a canceled one, for a cancel', () =>
    onGround(async (ground) => {
      const { open } = ground;
      const read = await readBack(ground, 'cancelCheckoutSession', (sessionId) =>
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
    // It is completed, and what would have to be answered is not there.
    ['completeCheckoutSession', 'completed', 'unreadable'],
    ['cancelCheckoutSession', 'ready_for_payment', 'not_happened'],
    ['cancelCheckoutSession', 'completed', 'not_happened'],
    ['cancelCheckoutSession', 'in_progress', 'in_progress'],
  ];
  for (const [operation, status, kind] of others)
    it(`${status}, for ${operation}: ${kind}`, () =>
      onGround(async (ground) => {
        const read = await readBack(ground, operation, (sessionId) => {
          const session = ground.merchant.session(sessionId);
          assert.ok(session);
          session.status = status;
        });
        assert.equal(read.kind, kind);
      }));

  it('nothing, when it cannot be read', () =>
    onGround(
      async (ground) => {
        const { merchant, events } = ground;
        const get = { operation: 'getCheckoutSession' } as const;
        const faults = [
          () => merchant.misbehave({ kind: 'status', status: 500, acts: false }, get),
          () => merchant.misbehave({ kind: 'status', status: 404, acts: false }, get),
          () => merchant.misbehave({ kind: 'hang', acts: false }, get),
          () => merchant.misbehave({ kind: 'answer', form: 'html' }, get),
        ];
        for (const fault of faults) {
          const read = await readBack(ground, 'completeCheckoutSession', fault);
          assert.equal(read.kind, 'unreadable');
          assert.equal(events.at(-1)?.data?.['readback'], true);
        }
      },
      { timeoutMs: 200 },
    ));

  it('create and update have no such question: they simply run again', () =>
    onGround(async ({ open }) => {
      assert.equal(open({ operation: 'createCheckoutSession' }).readBack, undefined);
      assert.equal(open({ operation: 'updateCheckoutSession', sessionId: 'cs_1' }).readBack, undefined);
    }));
});
