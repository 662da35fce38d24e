import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { eventsUntil, eventually, receiptWhen } from '../support/records.ts';
import { ARCHIVE } from '../support/sample-backend.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

/** Both prices of an operation: `free_<id>` and `<id>`. */
const PRICES = ['free', 'paid'] as const;
type Price = (typeof PRICES)[number];

describe('what the merchant answers reaches the agent', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  const invoke = async (price: Price, id: string, input: unknown = {}, requestId?: string): Promise<Response> => {
    const identity = requestId === undefined ? {} : { 'x-request-id': requestId };
    if (price === 'free') return testbed.gateway.invoke(`free_${id}`, input, identity);
    const proof = await testbed.proof(id, input);
    return testbed.gateway.invoke(id, input, { ...identity, 'payment-signature': proof });
  };

  for (const price of PRICES) {
    describe(`${price} call`, () => {
      it('5 MB of binary, byte for byte', async () => {
        const answer = await invoke(price, 'archive');
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
        const bytes = Buffer.from(await answer.arrayBuffer());
        assert.equal(createHash('sha256').update(bytes).digest('hex'), ARCHIVE.sha256);
      });

      it('CSV with its type and line ends', async () => {
        const answer = await invoke(price, 'price_list');
        assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8');
        assert.equal(await answer.text(), 'city,price\r\nBerlin,12.50\r\nSão Paulo,9.90\r\n');
      });

      it('204 without a body', async () => {
        const answer = await invoke(price, 'nothing');
        assert.equal(answer.status, 204);
        assert.equal((await answer.arrayBuffer()).byteLength, 0);
      });

      it('Content-Language', async () => {
        const answer = await invoke(price, 'greeting');
        assert.equal(answer.headers.get('content-language'), 'de');
        assert.equal(await answer.text(), 'Grüß Gott\n');
      });

      it('a slow stream, as it comes', async () => {
        const answer = await invoke(price, 'slow', { chunks: 5, everyMs: 40 });
        let pieces = 0;
        let text = '';
        for await (const piece of answer.body ?? []) {
          pieces += 1;
          text += Buffer.from(piece).toString();
        }
        assert.ok(pieces >= 3, `arrived in ${pieces} pieces: it was buffered`);
        assert.equal(text, '000000000\n000000001\n000000002\n000000003\n000000004\n');
      });

      it('only allow-listed headers, and none of the gateway’s own', async () => {
        const answer = await invoke(price, 'noisy', {}, `noisy-${price}`);
        const relayed = ['content-language', 'content-disposition', 'etag', 'last-modified', 'link'];
        for (const name of relayed) assert.ok(answer.headers.get(name), `${name} is relayed`);
        const dropped = [
          'set-cookie',
          'server',
          'x-powered-by',
          'x-internal',
          'access-control-allow-origin',
          'payment-required',
        ];
        for (const name of dropped) assert.equal(answer.headers.get(name), null, `${name} is not relayed`);
        assert.equal(answer.headers.get('x-request-id'), `noisy-${price}`);
        assert.notEqual(answer.headers.get('payment-response'), 'forged');
        assert.equal(answer.headers.get('cache-control'), price === 'free' ? 'max-age=60' : 'private, no-store');
        await answer.arrayBuffer();
      });

      it('the input reaches the merchant in its own bytes', async () => {
        const text = '{ "amount" : 1.0, "city":"S\\u00e3o Paulo" }';
        const path = `${testbed.gateway.url}/api/resources/${price === 'free' ? 'free_' : ''}echo/invoke`;
        const proof = price === 'free' ? {} : { 'payment-signature': await testbed.proof('echo', JSON.parse(text)) };
        const answer = await fetch(path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...proof },
          body: text,
        });
        assert.equal(await answer.text(), text);
      });

      it('nothing of the caller but what is on the list reaches the merchant', async () => {
        const secrets = {
          authorization: 'Bearer mine',
          cookie: 'a=b',
          'x-forwarded-for': '6.6.6.6',
          'agent-commerce-payer': 'me',
        };
        const input = {};
        const proof = price === 'free' ? {} : { 'payment-signature': await testbed.proof('request_headers', input) };
        const id = price === 'free' ? 'free_request_headers' : 'request_headers';
        const answer = await testbed.gateway.invoke(id, input, {
          ...secrets,
          ...proof,
          'x-request-id': `list-${price}`,
        });
        const { rawHeaders } = (await answer.json()) as { rawHeaders: string[] };
        const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
        const expected = [
          'host',
          'content-type',
          'content-length',
          'accept-encoding',
          'x-request-id',
          'agent-commerce-protocol',
          'agent-commerce-resource',
        ];
        const paid = ['agent-commerce-payer', 'agent-commerce-receipt', 'idempotency-key'];
        const allowed = [...expected, ...(price === 'paid' ? paid : []), 'connection', 'accept'];
        assert.deepEqual(
          names.filter((name) => !allowed.includes(name)),
          [],
        );
        for (const name of price === 'paid' ? [...expected, ...paid] : expected)
          assert.ok(names.includes(name), `${name} is sent`);
        if (price === 'paid') assert.ok(rawHeaders.includes(testbed.buyer.address.toLowerCase()));
      });
    });
  }

  interface Failure {
    readonly id: string;
    readonly input?: unknown;
    readonly details: Readonly<Record<string, unknown>>;
  }
  const told = (status: number) => ({ status, body: { error: 'the merchant says no', secret: 'internal-detail' } });
  const failures: readonly Failure[] = [
    { id: 'redirecting', details: { reason: 'redirect_not_followed', status: 302 } },
    { id: 'failing', input: { status: 402 }, details: { status: 402 } },
    { id: 'failing', input: { status: 404 }, details: { status: 404, backend: told(404) } },
    { id: 'failing', input: { status: 500 }, details: { status: 500, backend: told(500) } },
    { id: 'failing_post', input: { status: 503 }, details: { status: 503, backend: told(503) } },
    { id: 'resetting', details: { reason: 'transport' } },
    { id: 'resetting_post', details: { reason: 'transport' } },
    { id: 'silent', details: { reason: 'timeout', timeoutMs: 500 } },
    { id: 'bytes', input: { size: 10_485_761 }, details: { reason: 'response_too_large' } },
  ];

  for (const { id, input = {}, details } of failures) {
    const what = `${id} ${JSON.stringify(input)}`;
    const isPost = id.endsWith('_post');

    it(`free, ${what}: the envelope states why, and of the merchant's body what details.backend may hold`, async () => {
      const answer = await invoke('free', id, input);
      const timedOut = details['reason'] === 'timeout';
      assert.equal(answer.status, timedOut ? 504 : 502);
      const text = await answer.text();
      assert.ok(!text.includes('/reports/'));
      const body = JSON.parse(text) as Record<string, unknown>;
      assert.equal(body['code'], timedOut ? 'BACKEND_TIMEOUT' : 'BACKEND_ERROR');
      // What the backend does not have, or redirects, is not fetched.
      const isElsewhere = details['status'] === 302 || details['status'] === 404;
      assert.equal(body['retryable'], timedOut || (!isPost && !isElsewhere));
      assert.deepEqual(body['details'], details);
      assert.equal(answer.headers.get('location'), null);
      assert.equal(answer.headers.get('payment-response'), null);
    });

    const again = !isPost && details['reason'] !== 'response_too_large';
    it(`after settlement, ${what}: 502 with PAYMENT-RESPONSE, an undelivered receipt, retryable ${again}`, async () => {
      const requestId = `settled-${createHash('sha256').update(what).digest('hex').slice(0, 12)}`;
      const answer = await invoke('paid', id, input, requestId);
      assert.equal(answer.status, 502);
      const body = (await answer.json()) as { code: string; retryable: boolean; details: Record<string, unknown> };
      assert.equal(body.code, 'BACKEND_ERROR');
      assert.equal(body.retryable, again);
      assert.equal(body.details['state'], 'undelivered');
      assert.equal(typeof body.details['retryUntil'], again ? 'string' : 'undefined');
      for (const [name, value] of Object.entries(details)) assert.deepEqual(body.details[name], value);
      const summary = JSON.parse(Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString()) as {
        status: string;
      };
      assert.equal(summary.status, 'settled');
      const receipt = await receiptWhen(testbed.gateway, requestId, false);
      assert.equal(receipt.backendStatus, details['status'] ?? 0);
      const { status, reason = `backend_status_${status}` } = details;
      assert.equal(receipt.metadata?.backendErrorCode, reason === 'transport' ? 'reset' : reason);
      assert.ok(receipt.metadata?.backendPath?.startsWith('/'));
      const events = await eventsUntil(testbed.gateway, requestId, 'backend.failed');
      assert.deepEqual(
        events.map((event) => event.type),
        ['resource.requested', 'payment.verified', 'payment.settled', 'backend.failed'],
      );
    });
  }

  for (const price of PRICES)
    it(`${price}: an answer that breaks off breaks the connection and is no delivery`, async () => {
      const requestId = `broken-${price}`;
      await assert.rejects(async () => (await invoke(price, 'broken', {}, requestId)).arrayBuffer());
      const events = await eventsUntil(testbed.gateway, requestId, 'backend.failed');
      assert.ok(!events.some((event) => event.type === 'resource.delivered'));
      if (price === 'paid') await receiptWhen(testbed.gateway, requestId, false);
    });

  it('an answer over the cap without a declared length is cut, not completed', async () => {
    await assert.rejects(async () =>
      (await invoke('free', 'bytes', { size: 11_000_000, undeclared: true })).arrayBuffer(),
    );
  });

  it('a merchant that is not there is a transport failure of a free call, and no money is taken for a paid one', async () => {
    const nowhere = await openTestbed({ overrides: { backend: { baseUrl: 'http://127.0.0.1:1' } } });
    try {
      const free = await nowhere.gateway.invoke('free_echo');
      assert.equal(free.status, 502);
      const paid = await nowhere.gateway.invoke('echo', {}, { 'payment-signature': await nowhere.proof('echo') });
      const body = (await paid.json()) as { code: string; retryable: boolean };
      assert.deepEqual([paid.status, body.code, body.retryable], [503, 'GATEWAY_BUSY', true]);
      assert.equal(await nowhere.income(), 0n);
    } finally {
      await nowhere.close();
    }
  });

  it('a free call ends at the merchant when its caller leaves', async () => {
    testbed.backend.hold();
    const arrived = testbed.backend.nextRequest('/held');
    const leaving = new AbortController();
    const requestId = 'leaving-free';
    const call = fetch(`${testbed.gateway.url}/api/resources/free_held/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': requestId },
      body: '{}',
      signal: leaving.signal,
    });
    await arrived;
    leaving.abort();
    await assert.rejects(call);
    const events = await eventsUntil(testbed.gateway, requestId, 'backend.failed');
    assert.deepEqual(events.at(-1)?.data, { code: 'BACKEND_ERROR', reason: 'aborted' });
    testbed.backend.release();
  });

  it('a paid call runs to its end without its caller, and the same proof collects the answer', async () => {
    testbed.backend.hold();
    const arrived = testbed.backend.nextRequest('/held');
    const proof = await testbed.proof('held');
    const requestId = 'leaving-paid';
    const request = http.request(`${testbed.gateway.url}/api/resources/held/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'payment-signature': proof, 'x-request-id': requestId },
    });
    request.on('error', () => undefined);
    request.end('{}');
    await arrived;
    request.destroy();
    await new Promise((resolve) => request.once('close', resolve));
    testbed.backend.release();
    const receipt = await eventually(async () => {
      const written = await receiptWhen(testbed.gateway, requestId, false);
      return written.backendStatus === 0 ? undefined : written;
    }, 'the receipt with the status of the backend');
    assert.deepEqual([receipt.backendStatus, receipt.metadata?.backendErrorCode], [200, 'client_gone']);

    const before = await testbed.income();
    const called = testbed.backend.requests.filter(({ url }) => url.startsWith('/held')).length;
    const again = await eventually(async () => {
      const answer = await testbed.gateway.invoke(
        'held',
        {},
        { 'payment-signature': proof, 'x-request-id': 'collecting' },
      );
      return answer.status === 409 ? undefined : answer;
    }, 'the lease to be given up');
    assert.equal(again.status, 200);
    assert.deepEqual(await again.json(), { held: true });
    assert.equal(await testbed.income(), before, 'nothing is paid twice');
    const events = await eventsUntil(testbed.gateway, 'collecting', 'resource.delivered');
    assert.deepEqual(
      events.map((event) => event.type),
      ['resource.requested', 'resource.delivered'],
      'the merchant had answered, and the answer was kept',
    );
    assert.equal(testbed.backend.requests.filter(({ url }) => url.startsWith('/held')).length, called);
    const collected = await receiptWhen(testbed.gateway, 'collecting', true);
    assert.deepEqual([collected.id, collected.metadata?.resumedFrom], [receipt.id, requestId]);
    assert.equal(
      (await receiptWhen(testbed.gateway, requestId, true)).id,
      receipt.id,
      'found by the paying request too',
    );
  });
});
