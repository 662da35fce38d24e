import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATIONS, type Operation } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { answer, rawBackend } from '../../backend/raw-backend.ts';
import { EDITS, type Fault } from '../../support/acp/faults.ts';
import { freePorts } from '../../support/ports.ts';
import {
  type BackendOptions,
  type BackendWorld,
  completeWith,
  documentIn,
  type End,
  withBackend,
  write,
} from './with-backend.ts';

const AUTHENTICATION: BackendOptions = { authenticationErrors: true };
const POSTS = ['updateCheckoutSession', 'completeCheckoutSession', 'cancelCheckoutSession'] as const;
const status = (code: number, acts = false, document?: JsonObject): Fault => {
  return { kind: 'status', status: code, acts, ...(document === undefined ? {} : { document }) };
};
/** A refusal declared as longer than any document may be. */
const longPage = (code: number): Fault => status(code, false, { message: 'x'.repeat(300_000) });

/** Makes a call on a fresh session, with this fault of the backend. */
async function attempt({ backend, open, session }: BackendWorld, operation: Operation, fault: Fault): Promise<End> {
  const sessionId = operation === 'createCheckoutSession' ? undefined : await session();
  backend.misbehave(fault, { operation });
  const call = open({ operation, sessionId });
  return operation === 'getCheckoutSession' ? call.read() : write(call);
}

/** Kind and reason of an end, and the error that its caller gets. */
function endIn(end: End): readonly unknown[] {
  if (end.kind === 'answer') return ['answer', end.answer.status, documentIn(end)['code']];
  const { status: code, code: name } = end.failure;
  return end.kind === 'unknown' ? ['unknown', end.why, code, name] : [end.kind, code, name];
}

describe('what was asked for', () => {
  it('is sent in the backend’s own bytes', () =>
    withBackend(async ({ open, session }) => {
      const end = await write(open({ operation: 'completeCheckoutSession', sessionId: await session() }));
      assert.ok(end.kind === 'answer');
      assert.equal(end.answer.status, 200);
      assert.equal(documentIn(end)['status'], 'completed');
      assert.equal(JSON.stringify(documentIn(end)), Buffer.from(end.answer.body).toString());
    }));

  it('may be a declined payment, and 3D Secure to its end', () =>
    withBackend(async ({ backend, open, session }) => {
      const sessionId = await session();
      const result = { authentication_result: { outcome: 'authenticated' } };
      const bodies = [completeWith('tok_declined'), completeWith('tok_3ds'), completeWith('tok_3ds')];
      const found: unknown[] = [];
      for (const body of [...bodies, completeWith('tok_3ds', result)]) {
        const call = open({ operation: 'completeCheckoutSession', sessionId, body: Buffer.from(body) });
        const document = documentIn(await write(call));
        found.push(document['status'] ?? document['code']);
      }
      assert.deepEqual(found, ['ready_for_payment', 'authentication_required', 'requires_3ds', 'completed']);
      assert.equal(backend.orders(sessionId), 1);
    }, AUTHENTICATION));
});

describe('a refusal of the backend', () => {
  const rows: readonly (readonly [operation: Operation, from: number, to: number, code: string, page?: 'too long'])[] =
    [
      ['createCheckoutSession', 404, 404, 'checkout_session_not_found'],
      ['getCheckoutSession', 404, 404, 'checkout_session_not_found'],
      ['cancelCheckoutSession', 405, 405, 'checkout_session_not_cancelable'],
      ['completeCheckoutSession', 409, 409, 'checkout_session_conflict'],
      ['createCheckoutSession', 400, 422, 'invalid_request_body'],
      ['updateCheckoutSession', 422, 422, 'invalid_request_body'],
      ['completeCheckoutSession', 404, 404, 'checkout_session_not_found', 'too long'],
      ['completeCheckoutSession', 409, 409, 'checkout_session_conflict', 'too long'],
      ['completeCheckoutSession', 422, 422, 'invalid_request_body', 'too long'],
    ];
  for (const [operation, from, to, code, page] of rows)
    it(`${from} on ${operation}, page ${page ?? 'short'}, is kept as ${to} ${code}, with the gateway’s own message`, () =>
      withBackend(async (world) => {
        const end = await attempt(world, operation, page === undefined ? status(from) : longPage(from));
        assert.deepEqual(endIn(end), ['answer', to, code]);
        const { message, type } = documentIn(end);
        assert.equal(type, 'invalid_request');
        assert.doesNotMatch(String(message), /merchant: /);
      }));

  it('a create that the backend has no route for does not speak of a session', () =>
    withBackend(async (world) => {
      const end = await attempt(world, 'createCheckoutSession', status(404));
      assert.doesNotMatch(String(documentIn(end)['message']), /session/);
    }));

  it('requires_3ds is passed on, with its path and without the backend’s message', () =>
    withBackend(async (world) => {
      const document = { type: 'invalid_request', code: 'requires_3ds', message: 'merchant: secret' };
      const end = await attempt(world, 'completeCheckoutSession', status(400, false, document));
      assert.ok(end.kind === 'answer');
      assert.equal(end.answer.status, 422);
      assert.deepEqual(documentIn(end), {
        type: 'invalid_request',
        code: 'requires_3ds',
        message: 'The payment needs 3D Secure: send authentication_result.',
        param: '$.authentication_result',
      });
    }, AUTHENTICATION));

  it('requires_3ds is a refusal of the body unless authenticationErrors is on: as the specification has it', () =>
    withBackend(async (world) => {
      const document = { type: 'invalid_request', code: 'requires_3ds', message: 'no' };
      for (const code of [400, 422]) {
        const end = await attempt(world, 'completeCheckoutSession', status(code, false, document));
        assert.deepEqual(endIn(end), ['answer', 422, 'invalid_request_body']);
        assert.equal(documentIn(end)['param'], undefined);
      }
    }));

  it('requires_3ds counts in a valid Error document only', () =>
    withBackend(async (world) => {
      const document = { type: 'invalid_request', code: 'requires_3ds', message: 'no', more: 1 };
      const end = await attempt(world, 'completeCheckoutSession', status(400, false, document));
      assert.equal(documentIn(end)['code'], 'invalid_request_body');
    }, AUTHENTICATION));

  it('405 is one on cancel alone: elsewhere the backend does not serve what it must, 502', () =>
    withBackend(async (world) => {
      for (const operation of OPERATIONS.filter((one) => one !== 'cancelCheckoutSession')) {
        const end = await attempt(world, operation, status(405));
        assert.deepEqual(endIn(end), ['unknown', 'status', 502, 'processing_error'], operation);
        assert.ok(end.kind === 'unknown');
        assert.doesNotMatch(JSON.stringify(end.failure.document), /405|not allow/);
      }
    }));
});

describe('what certainly did not happen is released', () => {
  for (const fault of [status(401), status(403), status(429), longPage(401), longPage(429)])
    it(`the backend refuses the gateway, ${JSON.stringify(fault).slice(0, 60)}: 502`, () =>
      withBackend(async (world) => {
        const end = await attempt(world, 'completeCheckoutSession', fault);
        assert.deepEqual(endIn(end), ['not_executed', 502, 'processing_error']);
      }));

  it('the backend’s port is closed: 502', async () => {
    const [port] = await freePorts(1);
    await withBackend(
      async ({ open }) => {
        const end = await write(open({ operation: 'completeCheckoutSession', sessionId: 'cs_1' }));
        assert.deepEqual(endIn(end), ['not_executed', 502, 'processing_error']);
      },
      { origin: `http://127.0.0.1:${port}` },
    );
  });

  it('no socket was free in time: 504, and not a byte was sent', () =>
    withBackend(
      async ({ backend, connection, open }) => {
        backend.misbehave({ kind: 'hang', acts: false });
        const arrived = backend.arrived();
        const first = write(open({ operation: 'cancelCheckoutSession', sessionId: 'cs_1' }));
        await arrived;
        const second = await write(open({ operation: 'createCheckoutSession' }));
        assert.deepEqual(endIn(second), ['not_executed', 504, 'service_unavailable']);
        assert.equal(backend.calls.length, 1);
        await connection.abort();
        assert.equal((await first).kind, 'unknown');
      },
      { timeoutMs: { createCheckoutSession: 200 }, maxSockets: 1 },
    ));
});

describe('what may have happened stays unknown', () => {
  const redirect = (code: 301 | 302 | 303 | 307 | 308, location: string): Fault => {
    return { kind: 'redirect', status: code, location };
  };
  const rows: readonly (readonly [what: string, fault: Fault, why: string, reason: string | undefined])[] = [
    ['500 before acting', status(500), 'status', undefined],
    ['503 after acting', status(503, true), 'status', undefined],
    ['503 with too long a page', longPage(503), 'status', undefined],
    ['another 4xx', status(451), 'status', undefined],
    ['a redirect', redirect(307, 'http://127.0.0.1:9/never'), 'status', 'redirect_not_followed'],
    ['another 2xx', { kind: 'answer', form: 'wrong-status' }, 'status', undefined],
    ['a reset before acting', { kind: 'reset', acts: false }, 'reset', 'transport'],
    ['a reset after acting', { kind: 'reset', acts: true }, 'reset', 'transport'],
    ['half an answer', { kind: 'answer', form: 'broken-off' }, 'reset', 'transport'],
    ['a success with too long a page', longPage(200), 'invalid_document', 'response_too_large'],
    ['an oversized document', { kind: 'answer', form: 'oversized' }, 'invalid_document', 'response_too_large'],
    ['a document without end', { kind: 'answer', form: 'endless' }, 'invalid_document', 'response_too_large'],
    ['HTML', { kind: 'answer', form: 'html' }, 'invalid_document', 'invalid_document'],
    ['gzip', { kind: 'answer', form: 'gzip' }, 'invalid_document', 'invalid_document'],
    ['a fault', { kind: 'document', edit: EDITS['unknown-member'] }, 'invalid_document', 'invalid_document'],
  ];
  for (const [what, fault, why, reason] of rows)
    it(`${what}: 502`, () =>
      withBackend(async (world) => {
        for (const operation of POSTS) {
          const end = await attempt(world, operation, fault);
          assert.deepEqual(endIn(end), ['unknown', why, 502, 'processing_error'], operation);
          const event = world.events.at(-1);
          assert.equal(event?.type, 'backend.failed');
          assert.equal(event?.data?.['reason'], reason);
        }
        assert.equal(world.exchanging(), 0);
      }));

  it('no answer in time: 504', () =>
    withBackend(
      async (world) => {
        const end = await attempt(world, 'completeCheckoutSession', { kind: 'hang', acts: true });
        assert.deepEqual(endIn(end), ['unknown', 'timeout', 504, 'service_unavailable']);
        assert.equal(world.events.at(-1)?.data?.['code'], 'BACKEND_TIMEOUT');
        assert.equal(world.backend.allOrders(), 1);
      },
      { timeoutMs: 150 },
    ));

  it('a redirect is not followed: its target gets no request', async () => {
    const target = await rawBackend((socket) => answer(socket));
    try {
      await withBackend(async (world) => {
        for (const code of [301, 302, 303, 307, 308] as const)
          await attempt(world, 'completeCheckoutSession', redirect(code, target.origin));
        assert.equal(target.accepted(), 0);
      });
    } finally {
      await target.close();
    }
  });

  it('a caller that leaves ends its own GET', () =>
    withBackend(
      async ({ backend, open, session, exchanging }) => {
        const sessionId = await session();
        backend.misbehave({ kind: 'hang', acts: false });
        const left = new AbortController();
        const arrived = backend.arrived();
        const end = open({ operation: 'getCheckoutSession', sessionId }).read(left.signal);
        await arrived;
        left.abort();
        assert.equal((await end).kind, 'unknown');
        assert.equal(exchanging(), 0);
      },
      { timeoutMs: 5_000 },
    ));

  it('the shutdown ends the exchange', () =>
    withBackend(async ({ backend, connection, open }) => {
      backend.misbehave({ kind: 'hang', acts: true });
      const arrived = backend.arrived();
      const end = write(open({ operation: 'createCheckoutSession' }));
      await arrived;
      await connection.abort();
      assert.equal((await end).kind, 'unknown');
    }));
});
