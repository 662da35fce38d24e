import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { found } from '../../e2e/proofs.ts';
import { eventsUntil, receiptWhen } from '../../support/records.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { type CallResult, callTool, ENABLED } from './post.ts';

let testbed: Testbed;
let base: string;
before(async () => {
  testbed = await openTestbed({ overrides: ENABLED });
  base = testbed.gateway.url;
});
after(() => testbed?.close());

/** The largest answer that fits into a message, bytes. */
const CAP = 1_048_576;

describe('the answer of the backend, as a tool result', () => {
  it('an object: its JSON as text and as structured content, in both eras', async () => {
    for (const era of ['legacy', 'modern'] as const) {
      const { content, structuredContent, isError, resultType } = await callTool(base, 'cities', {}, { era });
      assert.deepEqual(structuredContent, { cities: ['Berlin', 'Lisboa', 'São Paulo'] });
      assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
      assert.deepEqual([isError, resultType], [undefined, era === 'modern' ? 'complete' : undefined]);
    }
  });

  it('JSON keeps the spelling of the backend', async () => {
    const { content } = await callTool(base, 'free_echo', { price: 1.5, deep: { list: [1, null, 'ü'] } });
    assert.equal(content[0]?.text, '{"price":1.5,"deep":{"list":[1,null,"ü"]}}');
  });

  it('a text: as it is, wrapped for the legacy era only', async () => {
    const [legacy, modern] = await Promise.all([
      callTool(base, 'free_greeting'),
      callTool(base, 'free_greeting', {}, { era: 'modern' }),
    ]);
    assert.equal(legacy.content[0]?.text, 'Grüß Gott\n');
    assert.deepEqual(legacy.structuredContent, { value: 'Grüß Gott\n' });
    assert.equal(modern.structuredContent as unknown, 'Grüß Gott\n');
  });

  it('an empty answer: an empty text', async () => {
    const { content, structuredContent } = await callTool(base, 'free_nothing');
    assert.deepEqual([content, structuredContent], [[{ type: 'text', text: '' }], { value: null }]);
  });

  it('bytes: an embedded resource with all of them', async () => {
    const { content } = await callTool(base, 'free_bytes', { size: 70_000 });
    const [block] = content;
    assert.equal(block?.type, 'resource');
    assert.equal(block.resource?.mimeType, 'application/octet-stream');
    assert.equal(Buffer.from(block.resource?.blob ?? '', 'base64').length, 70_000);
  });

  it('as much as fits is delivered, one byte more is a backend error, declared or not', async () => {
    const whole = await callTool(base, 'free_bytes', { size: CAP });
    assert.equal(whole.isError, undefined);
    for (const undeclared of [false, true]) {
      const { isError, structuredContent } = await callTool(base, 'free_bytes', { size: CAP + 1, undeclared });
      assert.equal(isError, true);
      assert.equal(structuredContent?.['code'], 'BACKEND_ERROR');
      assert.deepEqual((structuredContent['details'] as { reason: string }).reason, 'response_too_large');
    }
  });

  it('a failure: isError with its code, the same as text, in both eras', async () => {
    for (const [tool, input, code, status] of [
      ['free_failing', { status: 500 }, 'BACKEND_ERROR', 500],
      ['free_broken', {}, 'BACKEND_ERROR', undefined],
      ['free_market_report', { city: 'Berlin', extra: 1 }, 'INPUT_INVALID', undefined],
    ] as const)
      for (const era of ['legacy', 'modern'] as const) {
        const { content, structuredContent, isError, _meta } = await callTool(base, tool, input, { era });
        assert.equal(isError, true);
        assert.equal(structuredContent?.['code'], code);
        assert.equal(structuredContent['resourceId'], tool);
        assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
        assert.equal(_meta['agent-commerce/requestId'] as unknown, structuredContent['requestId']);
        const { backend } = (structuredContent['details'] ?? {}) as { backend?: { status: number } };
        assert.equal(backend?.status, status, 'what the backend says in JSON is shown');
      }
  });

  it('a broken answer of a paid call has its payment, and a receipt that is not delivered', async () => {
    const proof = await testbed.proof('broken');
    const { isError, structuredContent, _meta } = await callTool(base, 'broken', { _payment: proof });
    assert.equal(isError, true);
    assert.equal(structuredContent?.['code'], 'BACKEND_ERROR');
    assert.equal(structuredContent['retryable'], true);
    assert.equal(_meta['x402/payment-response']?.['success'], true);
    const { payment } = await receiptWhen(testbed.gateway, String(structuredContent['requestId']), false);
    assert.equal(payment?.externalReference, _meta['x402/payment-response']?.['transaction']);
  });

  it('a free call has events and a receipt under its channel', async () => {
    const { _meta } = await callTool(base, 'cities', {}, { headers: { 'x-request-id': 'mcp-events' } });
    assert.deepEqual(_meta['agent-commerce/delivery'], { requestId: 'mcp-events', resourceId: 'cities', status: 200 });
    const events = await eventsUntil(testbed.gateway, 'mcp-events', 'resource.delivered');
    assert.deepEqual(
      events.map(({ type, adapter }) => [type, adapter]),
      ['resource.requested', 'backend.called', 'resource.delivered'].map((type) => [type, 'mcp']),
    );
    assert.equal((await receiptWhen(testbed.gateway, 'mcp-events', true)).protocol, 'mcp');
  });

  it('the trace context of _meta reaches the backend, before that of the headers', async () => {
    const inMeta = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const inHeader = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01';
    const traced = { meta: { traceparent: inMeta, tracestate: 'a=1' }, headers: { traceparent: inHeader } };
    await callTool(base, 'free_request_headers', {}, traced);
    // The gateway looks after its backend by requests of its own.
    const { headers } = testbed.backend.requests.findLast(({ url }) => url === '/echo/headers') ?? {};
    assert.deepEqual([headers?.['traceparent'], headers?.['tracestate']], [inMeta, 'a=1']);
    assert.equal(headers?.['agent-commerce-protocol'], 'mcp');
  });
});

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };

const decoded = (proof: string): object => JSON.parse(Buffer.from(proof, 'base64').toString()) as object;

/** A request whose head is sent and whose body is not. */
async function openRequest(base: string): Promise<{ finish(body: string): Promise<string> }> {
  const request = http.request(`${base}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
  });
  request.write(' ');
  // Longer than a call must be open to count as waiting.
  await delay(50);
  return {
    finish: (body) =>
      new Promise((resolve, reject) => {
        request.on('error', reject);
        request.on('response', async (response) => {
          const chunks: Buffer[] = [];
          for await (const chunk of response) chunks.push(chunk as Buffer);
          resolve(Buffer.concat(chunks).toString());
        });
        request.end(body);
      }),
  };
}

describe('paying for a tool', () => {
  it('the challenge is the same in all its members, under HTTP 200', async () => {
    const { content, structuredContent, isError, _meta } = await callTool(base, 'market_report', CITY);
    assert.equal(isError, true);
    assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
    // The text for models: what is asked, and where a payment goes.
    assert.match(
      content[1]?.text ?? '',
      /^Payment of 0\.01 TUSD is required for Market report \(market_report\)\. Sign/,
    );
    assert.match(content[1]?.text ?? '', /_meta\["x402\/payment"\].*_payment/);
    const { x402Version, error, resource, accepts, extensions, ...more } = structuredContent ?? {};
    const { 'agent-commerce-buyer': token } = extensions as Readonly<Record<string, unknown>>;
    const echoed = { 'agent-commerce-buyer': token };
    assert.deepEqual(_meta['x402/error'], { x402Version, error, resource, accepts, extensions: echoed });
    assert.equal(error, 'Payment required');
    assert.deepEqual(more, { code: 'PAYMENT_REQUIRED' });
    const { body } = await testbed.quote('market_report', CITY);
    assert.deepEqual(accepts, body.payment.accepts, 'the terms are the same on every channel');
    const { publicBaseUrl } = testbed.gateway.config.merchant;
    assert.deepEqual(resource, { url: `${publicBaseUrl}/api/resources/market_report/invoke` });
  });

  it('the challenge is short: a model pays for what it reads of it', async () => {
    for (const [era, most] of [
      ['legacy', 2_400],
      ['modern', 2_500],
    ] as const) {
      const { content, structuredContent, ...rest } = await callTool(base, 'market_report', CITY, { era });
      const [read, all] = [{ content }, { content, structuredContent, ...rest }].map((part) => JSON.stringify(part));
      assert.ok((read ?? '').length <= 1_000, `${read?.length} characters of content`);
      assert.ok((all ?? '').length <= most, `${all?.length} characters`);
    }
  });

  it('a proof in any carrier, or the same in all: delivered, and exactly the price moves', async () => {
    const carriers: readonly ((proof: string) => [object, Parameters<typeof callTool>[3]])[] = [
      (proof) => [{ ...CITY, _payment: decoded(proof) }, { era: 'modern' }],
      (proof) => [CITY, { headers: { 'payment-signature': proof } }],
      (proof) => [
        { ...CITY, _payment: proof },
        { meta: { 'x402/payment': decoded(proof) }, headers: { 'payment-signature': proof.replace(/=+$/, '') } },
      ],
    ];
    for (const carry of carriers) {
      const [bought, earned] = [await testbed.buyer.balance(), await testbed.income()];
      const proof = await testbed.buyer.pay((await callTool(base, 'market_report', CITY)).structuredContent);
      const { structuredContent, isError, _meta } = await callTool(base, 'market_report', ...carry(proof));
      assert.equal(isError, undefined);
      assert.deepEqual(structuredContent, { ...CITY, currency: 'EUR', price: '12.50', volume: 340 });
      assert.equal(bought - (await testbed.buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      const response = _meta['x402/payment-response'] ?? {};
      assert.deepEqual([response['success'], response['payer']], [true, testbed.buyer.address.toLowerCase()]);
      const delivery = _meta['agent-commerce/delivery'] ?? {};
      assert.deepEqual(delivery['payment'], response);
      const receipt = await receiptWhen(testbed.gateway, String(delivery['requestId']), true);
      assert.deepEqual([receipt.protocol, receipt.id], ['mcp', response['receiptId']]);
      const events = await eventsUntil(testbed.gateway, receipt.requestId, 'resource.delivered');
      assert.ok(events.every(({ adapter }) => adapter === 'mcp'));
    }
  });

  it('a body that is held back until the proof is public does not get the answer', async () => {
    const input = { city: 'Lisboa' };
    const stalled = await openRequest(base);
    const proof = await testbed.proof('market_report', input);
    assert.equal((await callTool(base, 'market_report', { ...input, _payment: proof })).isError, undefined);
    const params = { name: 'market_report', arguments: { ...input, _payment: found(proof) } };
    const answer = await stalled.finish(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
    assert.match(answer, /PAYMENT_REPLAYED/);
    assert.doesNotMatch(answer, /12\.50/);
  });

  it('two different proofs are refused before money moves', async () => {
    const [one, other] = [await testbed.proof('market_report', CITY), await testbed.proof('market_report', CITY)];
    const earned = await testbed.income();
    const input = { ...CITY, _payment: one };
    const { isError, structuredContent } = await callTool(base, 'market_report', input, {
      meta: { 'x402/payment': other },
    });
    assert.deepEqual([isError, structuredContent?.['code']], [true, 'INPUT_INVALID']);
    assert.deepEqual(structuredContent?.['details'], { reason: 'payment_proofs_differ' });
    assert.equal(await testbed.income(), earned);
  });

  it('a refused proof gets a fresh challenge with the reason in all its members', async () => {
    const input = { ...CITY, _payment: 'bm9uZQ==' };
    const { structuredContent, _meta, isError, content } = await callTool(base, 'market_report', input);
    assert.equal(isError, true);
    assert.match(
      content[1]?.text ?? '',
      /^The payment proof was refused: invalid_payload \(its base64 must hold one JSON object/,
    );
    assert.equal(structuredContent?.['error'], 'invalid_payload');
    assert.equal(_meta['x402/error']?.['error'], 'invalid_payload');
    const { code, reason } = structuredContent['refusal'] as { code: string; reason: string };
    assert.deepEqual([code, reason], ['PAYMENT_INVALID', 'invalid_payload']);
  });

  it('a proof that was spent over HTTP buys nothing here, and the other way round', async () => {
    const proof = await testbed.proof('market_report', CITY);
    assert.equal((await testbed.gateway.invoke('market_report', CITY, { 'payment-signature': proof })).status, 200);
    const { structuredContent } = await callTool(base, 'market_report', { ...CITY, _payment: found(proof) });
    assert.equal(structuredContent?.['code'], 'PAYMENT_REPLAYED');
    const second = await testbed.proof('market_report', CITY);
    assert.equal((await callTool(base, 'market_report', { ...CITY, _payment: second })).isError, undefined);
    assert.equal(
      (await testbed.gateway.invoke('market_report', CITY, { 'payment-signature': found(second) })).status,
      409,
    );
  });

  it('the same proof and Idempotency-Key get the same answer again, marked as replayed', async () => {
    const proof = await testbed.proof('market_report', CITY);
    const again = () =>
      callTool(base, 'market_report', { ...CITY, _payment: proof }, { headers: { 'idempotency-key': 'my key' } });
    const [first, second] = [await again(), await again()];
    assert.deepEqual(second.structuredContent, first.structuredContent);
    assert.equal(first._meta['agent-commerce/delivery']?.['replayed'], undefined);
    assert.equal(second._meta['agent-commerce/delivery']?.['replayed'], true);
    const transaction = (result: CallResult) => result._meta['x402/payment-response']?.['transaction'];
    assert.equal(transaction(second), transaction(first));
  });

  it('a description in any script does not keep clients that write ASCII only from paying', async () => {
    const resources = { market_report: { description: '都市の市場価格' } };
    const far = await openTestbed({ overrides: { ...ENABLED, resources } });
    try {
      const { _meta } = await callTool(far.gateway.url, 'market_report', CITY);
      const { x402Version, resource, accepts } = _meta['x402/error'] ?? {};
      assert.match(JSON.stringify(_meta['x402/error']), /^[ -~]*$/);
      const payload = await far.buyer.client.createPaymentPayload({ x402Version, resource, accepts } as never);
      const paid = await callTool(far.gateway.url, 'market_report', CITY, {
        meta: { 'x402/payment': btoa(JSON.stringify(payload)) },
      });
      assert.equal(paid.isError, undefined);
    } finally {
      await far.close();
    }
  });
});
