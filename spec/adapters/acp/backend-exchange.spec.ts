import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutCall } from '../../../src/adapters/acp/call.ts';
import { answer, rawBackend } from '../../backend/raw-backend.ts';
import type { BackendCall } from '../../support/acp/checkout-backend.ts';
import { type BackendOptions, CREATE, completeWith, documentIn, withBackend, write } from './with-backend.ts';

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

describe('what a call to the backend carries', () => {
  it('is the body as it was received, byte for byte', async () => {
    const odd = `{ "currency" :"usd",\n"line_items":[{"id":"\\u0061é"}],"capabilities":{},"metadata":{"n":1.0e2}}`;
    const { body } = await sent({ body: Buffer.from(odd) });
    assert.equal(body.toString(), odd);
  });

  it('is nothing for a cancel without a body', () =>
    withBackend(async ({ backend, open, session }) => {
      const sessionId = await session();
      const end = await write(open({ operation: 'cancelCheckoutSession', sessionId }));
      assert.equal(documentIn(end)['status'], 'canceled');
      const call = backend.calls.at(-1) ?? assert.fail();
      assert.deepEqual(
        [call.body.length, call.headers['content-type'], call.headers['content-length']],
        [0, undefined, '0'],
      );
    }));

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
