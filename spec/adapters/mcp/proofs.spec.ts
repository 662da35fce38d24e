import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { found } from '../../e2e/proofs.ts';
import { eventsUntil, receiptWhen } from '../../support/records.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { type CallResult, callTool, ENABLED } from './post.ts';

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
  let testbed: Testbed;
  let base: string;
  before(async () => {
    testbed = await openTestbed({ overrides: ENABLED });
    base = testbed.gateway.url;
  });
  after(() => testbed.close());

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

  const carriers: Readonly<Record<string, (proof: string) => [object, Parameters<typeof callTool>[3]]>> = {
    'the argument _payment': (proof) => [{ ...CITY, _payment: proof }, {}],
    'the argument _payment as an object': (proof) => [{ ...CITY, _payment: decoded(proof) }, {}],
    '_meta as an object': (proof) => [CITY, { meta: { 'x402/payment': decoded(proof) } }],
    '_meta as base64': (proof) => [CITY, { meta: { 'x402/payment': proof } }],
    'the header': (proof) => [CITY, { headers: { 'payment-signature': proof } }],
    'all three at once': (proof) => [
      { ...CITY, _payment: proof },
      { meta: { 'x402/payment': decoded(proof) }, headers: { 'payment-signature': proof.replace(/=+$/, '') } },
    ],
  };
  for (const [carrier, carry] of Object.entries(carriers))
    for (const era of ['legacy', 'modern'] as const)
      it(`${carrier}, ${era}: delivered, and exactly the price moves`, async () => {
        const [bought, earned] = [await testbed.buyer.balance(), await testbed.income()];
        const proof = await testbed.buyer.pay((await callTool(base, 'market_report', CITY, { era })).structuredContent);
        const [input, options] = carry(proof);
        const { structuredContent, isError, _meta } = await callTool(base, 'market_report', input, { ...options, era });
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

  it('an empty _payment counts as absent', async () => {
    for (const _payment of ['', null]) {
      const { structuredContent } = await callTool(base, 'market_report', { ...CITY, _payment });
      assert.equal(structuredContent?.['error'], 'Payment required');
    }
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

  it('a caller that leaves collects the same answer later, and the backend runs once', async () => {
    const proof = await testbed.proof('held_post');
    const leaving = new AbortController();
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    const params = { name: 'held_post', arguments: { _payment: proof } };
    const arrived = testbed.backend.nextRequest('/held');
    const left = fetch(`${base}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': 'mcp-left' },
      body: JSON.stringify({ ...message, params }),
      signal: leaving.signal,
    });
    const { idempotencyKey = '' } = await arrived;
    leaving.abort();
    await assert.rejects(left);
    testbed.backend.release();
    await receiptWhen(testbed.gateway, 'mcp-left', false);
    const { structuredContent } = await callTool(base, 'held_post', { _payment: proof });
    assert.deepEqual(structuredContent, { held: true });
    assert.equal(testbed.backend.executions(idempotencyKey), 1);
  });

  it('a call that failed here after its payment can be collected over HTTP', async () => {
    const input = { failures: 1 };
    const proof = await testbed.proof('flaky', input);
    const failed = await callTool(base, 'flaky', { ...input, _payment: proof });
    assert.equal(failed.structuredContent?.['code'], 'BACKEND_ERROR');
    assert.match(
      String(failed.structuredContent['message']),
      /You have paid.*send the same call with the same payment/,
    );
    const answer = await testbed.gateway.invoke('flaky', input, { 'payment-signature': proof });
    assert.deepEqual([answer.status, await answer.json()], [200, { delivered: true }]);
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
