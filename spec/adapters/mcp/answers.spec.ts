import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventsUntil, receiptWhen } from '../../support/records.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { callTool, ENABLED } from './post.ts';

/** The largest answer that fits into a message, bytes. */
const CAP = 1_048_576;

describe('the answer of the backend, as a tool result', () => {
  let testbed: Testbed;
  let base: string;
  before(async () => {
    testbed = await openTestbed({ overrides: ENABLED });
    base = testbed.gateway.url;
  });
  after(() => testbed.close());

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

  for (const [tool, input, code] of [
    ['free_failing', { status: 500 }, 'BACKEND_ERROR'],
    ['free_redirecting', {}, 'BACKEND_ERROR'],
    ['free_resetting', {}, 'BACKEND_ERROR'],
    ['free_broken', {}, 'BACKEND_ERROR'],
    ['free_silent', {}, 'BACKEND_TIMEOUT'],
    ['free_market_report', { city: 7 }, 'INPUT_INVALID'],
    ['free_market_report', {}, 'INPUT_INVALID'],
    ['free_market_report', { city: 'Berlin', extra: 1 }, 'INPUT_INVALID'],
  ] as const)
    it(`${tool} ${JSON.stringify(input)}: isError with ${code}, the same as text`, async () => {
      for (const era of ['legacy', 'modern'] as const) {
        const { content, structuredContent, isError, _meta } = await callTool(base, tool, input, { era });
        assert.equal(isError, true);
        assert.equal(structuredContent?.['code'], code);
        assert.equal(structuredContent['resourceId'], tool);
        assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
        assert.equal(_meta['agent-commerce/requestId'] as unknown, structuredContent['requestId']);
        const { backend } = (structuredContent['details'] ?? {}) as { backend?: { status: number } };
        assert.equal(
          backend?.status,
          tool === 'free_failing' ? 500 : undefined,
          'what the backend says in JSON is shown',
        );
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

  it('more calls than slots: isError with GATEWAY_BUSY', async () => {
    const full = await openTestbed({ overrides: { ...ENABLED, limits: { maxInFlight: 1 } } });
    try {
      const arrived = full.backend.nextRequest('/held');
      const first = callTool(full.gateway.url, 'free_held');
      await arrived;
      const { isError, structuredContent } = await callTool(full.gateway.url, 'cities');
      assert.deepEqual([isError, structuredContent?.['code']], [true, 'GATEWAY_BUSY']);
      full.backend.release();
      assert.equal((await first).isError, undefined);
    } finally {
      await full.close();
    }
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
