import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutCall } from '../../../src/adapters/acp/backend-service.ts';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { OPERATIONS, type Operation } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import { answer, rawBackend } from '../../backend/raw-backend.ts';
import type { BackendCall } from '../../support/acp/checkout-backend.ts';
import { EDITS, type Fault } from '../../support/acp/faults.ts';
import { freePorts } from '../../support/ports.ts';
import {
  type BackendOptions,
  type BackendWorld,
  CREATE,
  completeWith,
  documentIn,
  type End,
  withBackend,
  write,
} from './with-backend.ts';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** The call of this caller, as it reached the backend. */
async function sent(call: Partial<CheckoutCall>, options: BackendOptions = {}): Promise<BackendCall> {
  let received: BackendCall | undefined;
  await withBackend(async ({ backend, open }) => {
    await write(open({ operation: 'createCheckoutSession', ...call }), { backendKey: 'derived', number: 3 });
    received = backend.calls.at(-1);
  }, options);
  assert.ok(received);
  return received;
}

/** Names and values as they stood on the wire, without those of the connection. */
function fieldsOf({ rawHeaders }: BackendCall): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    assert.equal(fields[name], undefined, `${name} came twice`);
    fields[name] = rawHeaders[at + 1] ?? '';
  }
  const { host: _host, connection: _connection, 'content-length': _length, ...others } = fields;
  return others;
}

describe('the headers of a call to the backend', () => {
  it('are those of the table, and nothing else of the caller’s', async () => {
    const call = await sent({
      callerRequestId: 'req-of-the-caller',
      contentType: 'application/json; charset=utf-8',
      caller: {
        'accept-language': ['en-US'],
        'user-agent': ['Agent/1.0'],
        signature: ['c2lnbmF0dXJl'],
        timestamp: ['2026-04-17T10:00:00Z'],
        traceparent: [TRACEPARENT],
        tracestate: ['a=1'],
        authorization: ['Bearer secret'],
        cookie: ['a=b'],
        'idempotency-key': ['of-the-caller'],
        'x-request-id': ['forged'],
        'x-attempt': ['99'],
        'accept-encoding': ['gzip'],
        accept: ['text/html'],
        'x-forwarded-for': ['1.2.3.4'],
        'agent-commerce-payer': ['forged'],
        'agent-commerce-client': ['forged'],
        te: ['trailers'],
      },
    });
    assert.deepEqual(fieldsOf(call), {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'agent-commerce-client': 'assistant',
      'api-version': '2026-04-17',
      'request-id': 'req-of-the-caller',
      'x-request-id': 'acp_1',
      'accept-language': 'en-US',
      'user-agent': 'Agent/1.0',
      signature: 'c2lnbmF0dXJl',
      timestamp: '2026-04-17T10:00:00Z',
      'content-type': 'application/json; charset=utf-8',
      'idempotency-key': 'derived',
      'x-attempt': '3',
      traceparent: TRACEPARENT,
      tracestate: 'a=1',
    });
  });

  it('name the gateway’s request where the caller named none', async () => {
    const { 'request-id': id } = fieldsOf(await sent({}));
    assert.equal(id, 'acp_1');
  });

  it('leave out what came twice, is too long, or is not printable', async () => {
    const fields = fieldsOf(
      await sent({
        caller: {
          signature: ['one', 'two'],
          timestamp: ['2026\u00e9'],
          'accept-language': ['e'.repeat(257)],
          'user-agent': ['A'.repeat(513)],
          traceparent: ['00-none'],
          tracestate: ['a=1'],
        },
      }),
    );
    for (const name of ['signature', 'timestamp', 'accept-language', 'user-agent', 'traceparent', 'tracestate'])
      assert.equal(fields[name], undefined, name);
  });

  it('have the longest values that are allowed', async () => {
    const caller = { 'accept-language': ['e'.repeat(256)], 'user-agent': ['A'.repeat(512)] };
    const fields = fieldsOf(await sent({ caller }));
    assert.equal(fields['accept-language']?.length, 256);
    assert.equal(fields['user-agent']?.length, 512);
  });

  it('end with those of the operator, which no caller replaces', async () => {
    const headers = { Authorization: 'Bearer of-the-operator', 'user-agent': 'Gateway' };
    const caller = { authorization: ['Bearer forged'], 'user-agent': ['Agent'] };
    const fields = fieldsOf(await sent({ caller }, { headers }));
    assert.equal(fields['authorization'], 'Bearer of-the-operator');
    assert.equal(fields['user-agent'], 'Gateway');
  });

  it('have no key on a GET, and those about a message go with that message alone', () =>
    withBackend(async ({ backend, open, session }) => {
      const sessionId = await session();
      const caller = { signature: ['s'], timestamp: ['t'], 'accept-language': ['de'] };
      await open({ operation: 'getCheckoutSession', sessionId, caller }).read();
      const read = fieldsOf(backend.calls.at(-1) ?? assert.fail());
      assert.deepEqual([read['idempotency-key'], read['x-attempt'], read['signature']], [undefined, undefined, 's']);
      await open({ operation: 'completeCheckoutSession', sessionId, caller }).readBack?.();
      const back = fieldsOf(backend.calls.at(-1) ?? assert.fail());
      assert.equal(backend.calls.at(-1)?.operation, 'getCheckoutSession');
      const { signature, timestamp, 'content-type': type, 'idempotency-key': key } = back;
      assert.deepEqual([signature, timestamp, type, key], [undefined, undefined, undefined, undefined]);
      assert.equal(back['accept-language'], 'de');
    }));
});

describe('a call to the backend', () => {
  it('goes to the configured path, with the session as one segment of it', () =>
    withBackend(async ({ backend, open }) => {
      for (const sessionId of ['gid://shop/Checkout/1', 'a b?c#d%', "$&$'$`", 'ü'])
        await write(open({ operation: 'completeCheckoutSession', sessionId, body: Buffer.from(completeWith()) }));
      assert.deepEqual(
        backend.calls.map(({ sessionId }) => sessionId),
        ['gid://shop/Checkout/1', 'a b?c#d%', "$&$'$`", 'ü'],
      );
      assert.equal(backend.calls[0]?.url, '/checkout_sessions/gid%3A%2F%2Fshop%2FCheckout%2F1/complete');
    }));

  it('goes below the prefix of the base URL', async () => {
    const backend = await rawBackend((socket) => answer(socket));
    try {
      await withBackend(
        async ({ open }) => {
          await write(open({ operation: 'cancelCheckoutSession', sessionId: 'cs_1' }));
        },
        { origin: backend.origin, prefix: '/shop/v1' },
      );
      assert.match(backend.requests[0]?.head ?? '', /^POST \/shop\/v1\/checkout_sessions\/cs_1\/cancel HTTP/);
    } finally {
      await backend.close();
    }
  });

  it('goes on a connection of its own', () =>
    withBackend(async ({ backend, open }) => {
      for (let call = 0; call < 5; call += 1)
        await write(open({ operation: 'createCheckoutSession', body: Buffer.from(CREATE) }));
      assert.equal(backend.calls.length, 5);
      for (const { headers } of backend.calls) assert.equal(headers.connection, 'close');
    }));
});

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
  const { status: code, code: name } = errorIn(end);
  return end.kind === 'unknown' ? ['unknown', end.why, code, name] : [end.kind, code, name];
}

/** The error of an end without an answer. */
function errorIn({ failure }: Extract<End, { readonly failure: Error }>): AcpError {
  return failure instanceof AcpError ? failure : assert.fail(failure);
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
        assert.doesNotMatch(JSON.stringify(errorIn(end).document), /405|not allow/);
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
});
