import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { eventsUntil, receiptWhen } from '../support/records.ts';
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
    { id: 'failing', input: { status: 500 }, details: { status: 500, backend: told(500) } },
    { id: 'failing_post', input: { status: 503 }, details: { status: 503, backend: told(503) } },
    { id: 'resetting_post', details: { reason: 'transport' } },
    { id: 'silent', details: { reason: 'timeout', timeoutMs: 500 } },
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
      assert.equal(body['retryable'], !isPost);
      assert.deepEqual(body['details'], details);
      assert.equal(answer.headers.get('location'), null);
      assert.equal(answer.headers.get('payment-response'), null);
    });

    it(`after settlement, ${what}: 502 with PAYMENT-RESPONSE, an undelivered receipt, retryable ${!isPost}`, async () => {
      const requestId = `settled-${createHash('sha256').update(what).digest('hex').slice(0, 12)}`;
      const answer = await invoke('paid', id, input, requestId);
      assert.equal(answer.status, 502);
      const body = (await answer.json()) as { code: string; retryable: boolean; details: Record<string, unknown> };
      assert.equal(body.code, 'BACKEND_ERROR');
      assert.equal(body.retryable, !isPost);
      assert.equal(body.details['state'], 'undelivered');
      assert.equal(typeof body.details['retryUntil'], isPost ? 'undefined' : 'string');
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
});
