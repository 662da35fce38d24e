import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATIONS, type Operation } from '../../../../src/checkouts/operations.ts';
import { answer, rawBackend } from '../../../backend/raw-backend.ts';
import { EDITS, type Fault } from '../../../support/acp/faults.ts';
import { freePorts } from '../../../support/ports.ts';
import { documentIn, type Ground, type GroundOptions, onGround, write } from './ground.ts';

const AUTHENTICATION: GroundOptions = { authenticationErrors: true };
const POSTS = ['updateCheckoutSession', 'completeCheckoutSession', 'cancelCheckoutSession'] as const;

/** Makes a call on a fresh session, with the merchant misbehaving for it. */
async function attempt(
  { merchant, open, session }: Ground,
  operation: Operation,
  fault: Fault,
): Promise<Awaited<ReturnType<typeof write>>> {
  const sessionId = operation === 'createCheckoutSession' ? undefined : await session();
  merchant.misbehave(fault, { operation });
  const visit = open({ operation, sessionId });
  return operation === 'getCheckoutSession' ? visit.read() : write(visit);
}

const status = (code: number, acts = false): Fault => ({ kind: 'status', status: code, acts });

describe('a refusal of the merchant', () => {
  const rows: readonly (readonly [operation: Operation, from: number, to: number, code: string])[] = [
    ['createCheckoutSession', 404, 404, 'checkout_session_not_found'],
    ['getCheckoutSession', 404, 404, 'checkout_session_not_found'],
    ['cancelCheckoutSession', 405, 405, 'checkout_session_not_cancelable'],
    ['completeCheckoutSession', 409, 409, 'checkout_session_conflict'],
    ['createCheckoutSession', 400, 422, 'invalid_request_body'],
    ['updateCheckoutSession', 422, 422, 'invalid_request_body'],
  ];
  for (const [operation, from, to, code] of rows)
    it(`${from} on ${operation} is kept as ${to} ${code}, in our own words`, () =>
      onGround(async (ground) => {
        const end = await attempt(ground, operation, status(from));
        assert.ok(end.kind === 'answer');
        assert.equal(end.answer.status, to);
        const { code: said, message, type } = documentIn(end);
        assert.deepEqual({ said, type }, { said: code, type: 'invalid_request' });
        assert.doesNotMatch(String(message), /merchant: /);
      }));

  it('a create that the merchant has no route for does not speak of a session', () =>
    onGround(async (ground) => {
      const end = await attempt(ground, 'createCheckoutSession', status(404));
      assert.doesNotMatch(String(documentIn(end)['message']), /session/);
    }));

  it('requires_3ds is passed on, with its place and none of the merchant’s words', () =>
    onGround(async (ground) => {
      const { merchant, open, session } = ground;
      const sessionId = await session();
      const document = { type: 'invalid_request', code: 'requires_3ds', message: 'merchant: secret' };
      merchant.misbehave({ kind: 'status', status: 400, acts: false, document });
      const end = await write(open({ operation: 'completeCheckoutSession', sessionId }));
      assert.ok(end.kind === 'answer');
      assert.equal(end.answer.status, 422);
      assert.deepEqual(documentIn(end), {
        type: 'invalid_request',
        code: 'requires_3ds',
        message: 'The payment needs 3D Secure: send authentication_result.',
        param: '$.authentication_result',
      });
    }, AUTHENTICATION));

  it('requires_3ds is a refusal of the body unless authenticationErrors is on: that is what the specification says', () =>
    onGround(async (ground) => {
      for (const code of [400, 422]) {
        const document = { type: 'invalid_request', code: 'requires_3ds', message: 'no' };
        const fault: Fault = { kind: 'status', status: code, acts: false, document };
        const end = await attempt(ground, 'completeCheckoutSession', fault);
        assert.ok(end.kind === 'answer');
        assert.deepEqual(
          [end.answer.status, documentIn(end)['code'], documentIn(end)['param']],
          [422, 'invalid_request_body', undefined],
        );
      }
    }));

  it('405 is one on cancel alone: elsewhere the merchant does not serve what it must, 502', () =>
    onGround(async (ground) => {
      const others = OPERATIONS.filter((operation) => operation !== 'cancelCheckoutSession');
      for (const operation of others) {
        const end = await attempt(ground, operation, status(405));
        assert.ok(end.kind === 'unknown', `${operation}: ${end.kind}`);
        assert.deepEqual([end.why, end.failure.status, end.failure.code], ['status', 502, 'processing_error']);
        assert.doesNotMatch(JSON.stringify(end.failure.document), /405|not allow/);
      }
    }));

  it('requires_3ds counts in a valid Error document only', () =>
    onGround(async (ground) => {
      const document = { type: 'invalid_request', code: 'requires_3ds', message: 'no', more: 1 };
      const fault: Fault = { kind: 'status', status: 400, acts: false, document };
      const end = await attempt(ground, 'completeCheckoutSession', fault);
      assert.equal(documentIn(end)['code'], 'invalid_request_body');
    }, AUTHENTICATION));
});

describe('what certainly did not happen is released', () => {
  for (const code of [401, 403, 429])
    it(`the merchant turns the gateway away with ${code}: 502`, () =>
      onGround(async (ground) => {
        const end = await attempt(ground, 'completeCheckoutSession', status(code));
        assert.ok(end.kind === 'not_executed');
        assert.deepEqual([end.failure.status, end.failure.code], [502, 'processing_error']);
      }));

  it('nobody listens at the merchant’s port: 502', async () => {
    const [port] = await freePorts(1);
    await onGround(
      async ({ open }) => {
        const end = await write(open({ operation: 'completeCheckoutSession', sessionId: 'cs_1' }));
        assert.ok(end.kind === 'not_executed');
        assert.deepEqual([end.failure.status, end.failure.code], [502, 'processing_error']);
      },
      { origin: `http://127.0.0.1:${port}` },
    );
  });

  it('no socket was free in time: 504, and not a byte was sent', () =>
    onGround(
      async ({ merchant, open }) => {
        merchant.misbehave({ kind: 'hang', acts: false });
        const first = write(open({ operation: 'createCheckoutSession' }));
        const second = await write(open({ operation: 'createCheckoutSession' }));
        assert.ok(second.kind === 'not_executed');
        assert.equal(second.failure.status, 504);
        assert.equal((await first).kind, 'unknown');
        assert.equal(merchant.calls.length, 1);
      },
      { timeoutMs: 200, maxSockets: 1 },
    ));
});

describe('what may have happened stays unknown', () => {
  const nowhere = 'http://127.0.0.1:9/never';
  const rows: readonly (readonly [what: string, fault: Fault, why: string, reason: string | undefined])[] = [
    ['500 before acting', status(500), 'status', undefined],
    ['503 after acting', status(503, true), 'status', undefined],
    ['another 4xx', status(451), 'status', undefined],
    ['a redirect', { kind: 'redirect', status: 307, location: nowhere }, 'status', 'redirect_not_followed'],
    ['another 2xx', { kind: 'answer', form: 'wrong-status' }, 'status', undefined],
    ['a reset before acting', { kind: 'reset', acts: false }, 'reset', 'transport'],
    ['a reset after acting', { kind: 'reset', acts: true }, 'reset', 'transport'],
    ['half an answer', { kind: 'answer', form: 'broken-off' }, 'reset', 'transport'],
    ['an oversized document', { kind: 'answer', form: 'oversized' }, 'invalid_document', 'response_too_large'],
    ['a document without end', { kind: 'answer', form: 'endless' }, 'invalid_document', 'response_too_large'],
    ['HTML', { kind: 'answer', form: 'html' }, 'invalid_document', 'invalid_document'],
    ['gzip', { kind: 'answer', form: 'gzip' }, 'invalid_document', 'invalid_document'],
    [
      'an invalid document',
      { kind: 'document', edit: EDITS['unknown-member'] },
      'invalid_document',
      'invalid_document',
    ],
  ];
  for (const [what, fault, why, reason] of rows)
    it(`${what}: 502`, () =>
      onGround(async (ground) => {
        for (const operation of POSTS) {
          const end = await attempt(ground, operation, fault);
          assert.ok(end.kind === 'unknown', `${operation}: ${end.kind}`);
          assert.deepEqual([end.why, end.failure.status, end.failure.code], [why, 502, 'processing_error']);
          const event = ground.events.at(-1);
          assert.equal(event?.type, 'backend.failed');
          assert.equal(event?.data?.['reason'], reason);
        }
        assert.equal(ground.exchanging(), 0);
      }));

  it('no answer in time: 504', () =>
    onGround(
      async (ground) => {
        const end = await attempt(ground, 'completeCheckoutSession', { kind: 'hang', acts: true });
        assert.ok(end.kind === 'unknown');
        assert.deepEqual([end.why, end.failure.status, end.failure.code], ['timeout', 504, 'service_unavailable']);
        assert.equal(ground.events.at(-1)?.data?.['code'], 'BACKEND_TIMEOUT');
        assert.equal(ground.merchant.allOrders(), 1);
      },
      { timeoutMs: 150 },
    ));

  it('a redirect leads nowhere: its target is never asked', async () => {
    const target = await rawBackend((socket) => answer(socket));
    try {
      await onGround(async (ground) => {
        for (const code of [301, 302, 303, 307, 308] as const)
          await attempt(ground, 'completeCheckoutSession', { kind: 'redirect', status: code, location: target.origin });
        assert.equal(target.accepted(), 0);
      });
    } finally {
      await target.close();
    }
  });

  it('the shutdown breaks the exchange off', () =>
    onGround(async ({ merchant, hop, open }) => {
      merchant.misbehave({ kind: 'hang', acts: true });
      const arrived = merchant.arrived();
      const end = write(open({ operation: 'createCheckoutSession' }));
      await arrived;
      await hop.abort();
      const { kind } = await end;
      assert.equal(kind, 'unknown');
    }));
});
