import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { x402Client as AxiosClient, wrapAxiosWithPayment } from '@x402/axios';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import axios from 'axios';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { CURRENCY } from '../support/config.ts';
import { soldInPlace } from '../support/in-place.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, metadataOf, receiptWhen } from '../support/records.ts';
import { openTestbed, quoteOf, type Testbed } from '../support/testbed.ts';
import { type Answered, ask, assertEnvelope } from './ask.ts';
import { bring, failure, replayed } from './bring.ts';
import { bringInPlace, proofInPlace } from './in-place.ts';
import { found } from './proofs.ts';

/** `market_report` costs 0.01, most others 0.001 of a token with six decimals. */
const REPORT_UNITS = 10_000n;
const UNITS = 1_000n;
const BERLIN = { city: 'Berlin' };
const PROTOCOLS = { mcp: { enabled: true }, a2a: { enabled: true } };

describe('a resource that is sold in place', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { protocols: PROTOCOLS, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());

  /** What the payee gets while something runs. */
  const earned = async (run: () => Promise<unknown>): Promise<bigint> => {
    const income = await testbed.income();
    await run();
    return (await testbed.income()) - income;
  };
  const get = (path: string, method = 'GET', headers: Readonly<Record<string, string>> = {}): Promise<Answered> =>
    ask(testbed.gateway.url, { method, path, headers });

  it('is bought with GET /reports/Berlin by the official client for fetch: exact balances, receipt and events', async () => {
    const { gateway, buyer, backend } = testbed;
    const balance = await buyer.balance();
    backend.forget();
    const requestId = 'in-place-fetch';
    let answer: Response | undefined;
    const income = await earned(async () => {
      answer = await buyer.fetch(`${gateway.url}/reports/Berlin?utm=x`, { headers: { 'x-request-id': requestId } });
      assert.deepEqual(await answer.json(), { city: 'Berlin', currency: 'EUR', price: '12.50', volume: 340 });
    });
    assert.deepEqual([answer?.status, income, balance - (await buyer.balance())], [200, REPORT_UNITS, REPORT_UNITS]);
    assert.equal(answer?.headers.get('cache-control'), 'private, no-store');
    assert.equal(answer?.headers.get('accept-ranges'), 'none');
    const [request, ...others] = backend.requests;
    assert.deepEqual([request?.url, others.length], ['/reports/Berlin', 0]);
    assert.equal(request?.headers['agent-commerce-protocol'], 'http');
    const receipt = await receiptWhen(gateway, requestId, true);
    assert.deepEqual([receipt.protocol, metadataOf(receipt)], ['http', { channel: 'origin' }]);
    const events = await eventsUntil(gateway, requestId, 'resource.delivered');
    for (const { adapter, resourceId } of events) assert.deepEqual([adapter, resourceId], ['http', 'market_report']);
    const metrics = await readMetrics(gateway.managementUrl);
    assert.match(metrics, /acg_calls_total\{resource="market_report",channel="origin",outcome="delivered"\} 1/);
  });

  it('is bought by the official client for axios, whose body and path are UTF-8', async () => {
    const client = new AxiosClient().register('eip155:*', new ExactEvmScheme(testbed.buyer.account));
    const shop = wrapAxiosWithPayment(axios.create({ baseURL: testbed.gateway.url }), client);
    const income = await earned(async () => {
      const report = await shop.get('/reports/S%C3%A3o%20Paulo');
      assert.deepEqual([report.status, report.data.city], [200, 'São Paulo']);
      const echo = await shop.post('/echo', { said: 'Grüße', nested: { list: [1, 2.5] } });
      assert.deepEqual([echo.status, echo.data], [200, { said: 'Grüße', nested: { list: [1, 2.5] } }]);
    });
    assert.equal(income, REPORT_UNITS + UNITS);
  });

  it('sends the backend the bytes of a JSON body as they came', async () => {
    const { gateway, buyer, backend } = testbed;
    backend.forget();
    const body = '{ "one": 1.0, "hundred": 1e2 }';
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const answer = await buyer.fetch(`${gateway.url}/echo`, init);
    assert.equal(await answer.text(), body);
    assert.equal(backend.requests[0]?.body.toString(), body);
  });

  it('with a proof of the one address is bought at the other, and collected at both', async () => {
    const { gateway, buyer } = testbed;
    const atInvoke = (proof: string) => bring(gateway, 'market_report', BERLIN, { proof });
    const inPlace = (proof: string) => bringInPlace(gateway, 'market_report', BERLIN, { proof });
    const there = await proofInPlace(testbed, 'market_report', BERLIN);
    const here = await buyer.pay((await quoteOf(gateway, 'market_report', BERLIN)).body.payment.envelope);
    for (const [proof, first, second] of [
      [there, atInvoke, inPlace],
      [here, inPlace, atInvoke],
    ] as const) {
      const income = await earned(async () => {
        const bought = await first(proof);
        assert.deepEqual([bought.status, bought.payment?.success], [200, true]);
        await receiptWhen(gateway, bought.requestId, true);
        for (const again of [await second(proof), await first(proof)]) {
          assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
          assert.deepEqual(again.bytes, bought.bytes);
        }
        replayed(await second(found(proof)), 'delivered');
      });
      assert.equal(income, REPORT_UNITS);
    }
  });

  it('with a proof of another resource of the same price buys nothing', async () => {
    const proof = await proofInPlace(testbed, 'noisy', {});
    const income = await earned(async () => {
      const answer = await bringInPlace(testbed.gateway, 'greeting', {}, { proof });
      const { error } = JSON.parse(answer.bytes.toString()) as { readonly error: { readonly reason: string } };
      assert.deepEqual([answer.status, error.reason], [402, 'invalid_payment_requirements']);
    });
    assert.equal(income, 0n);
  });

  it('bought for another input: 409 "used", and nothing about the payment', async () => {
    const proof = await proofInPlace(testbed, 'market_report', BERLIN);
    assert.equal((await bringInPlace(testbed.gateway, 'market_report', BERLIN, { proof })).status, 200);
    const other = await bringInPlace(testbed.gateway, 'market_report', { city: 'Lisboa' }, { proof });
    assert.deepEqual(replayed(other, 'used').details, { state: 'used' });
  });

  it('paid and undelivered is collected in place and on invoke, never by a stranger', async () => {
    for (const [attempt, collect] of [
      ['in place', (proof: string) => bringInPlace(testbed.gateway, 'flaky', { failures: 1 }, { proof })],
      ['on invoke', (proof: string) => bring(testbed.gateway, 'flaky', { failures: 1 }, { proof })],
    ] as const) {
      const proof = await proofInPlace(testbed, 'flaky', { failures: 1 });
      const income = await earned(async () => {
        const failed = await bringInPlace(testbed.gateway, 'flaky', { failures: 1 }, { proof });
        const { retryable, details } = failure(failed, 502, 'BACKEND_ERROR');
        assert.deepEqual([retryable, details.state], [true, 'undelivered']);
        const stranger = await bringInPlace(testbed.gateway, 'flaky', { failures: 1 }, { proof: found(proof) });
        replayed(stranger, 'undelivered');
        const collected = await collect(proof);
        assert.deepEqual([collected.status, collected.bytes.toString()], [200, '{"delivered":true}'], attempt);
        const receipt = await receiptWhen(testbed.gateway, collected.requestId, true);
        const key = backendIdempotencyKey(receipt.payment?.replayKey ?? '');
        assert.equal(testbed.backend.executions(key), 2, 'once failed, once for its buyer');
      });
      assert.equal(income, UNITS);
    }
  });

  it('in twenty copies at once, over both addresses: one settlement, one execution', async () => {
    testbed.backend.forget();
    const proof = await proofInPlace(testbed, 'market_report', BERLIN);
    const income = await earned(async () => {
      const copies = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          at % 4 === 0
            ? bring(testbed.gateway, 'market_report', BERLIN, { proof })
            : bringInPlace(testbed.gateway, 'market_report', BERLIN, { proof }),
        ),
      );
      for (const { status, bytes } of copies)
        assert.ok(status === 200 || /PAYMENT_REPLAYED|GATEWAY_BUSY/.test(bytes.toString()), bytes.toString());
      assert.ok(copies.some(({ status }) => status === 200));
    });
    assert.deepEqual([income, testbed.backend.requests.length], [REPORT_UNITS, 1]);
  });

  it('HEAD with a good proof buys nothing, and leaves the proof as good as it was', async () => {
    testbed.backend.forget();
    const proof = await proofInPlace(testbed, 'market_report', BERLIN);
    const income = await earned(async () => {
      const [asked, headed] = [
        await get('/reports/Berlin'),
        await get('/reports/Berlin', 'HEAD', { 'payment-signature': proof }),
      ];
      assert.deepEqual([headed.status, headed.text], [402, '']);
      const head = ({ headers: { date: _d, 'x-request-id': _i, 'payment-required': offer, ...rest } }: Answered) => ({
        ...rest,
        offer: offer?.length,
      });
      assert.deepEqual(head(headed), head(asked));
    });
    assert.deepEqual([income, testbed.backend.requests.length], [0n, 0]);
    assert.equal((await bringInPlace(testbed.gateway, 'market_report', BERLIN, { proof })).status, 200);
  });

  it('is answered whole, whatever its caller has already', async () => {
    testbed.backend.forget();
    const proof = await proofInPlace(testbed, 'noisy', {});
    const headers = {
      'if-none-match': '"noisy-1"',
      range: 'bytes=0-1',
      'if-range': '"noisy-1"',
      'accept-encoding': 'gzip',
      cookie: 'a=b',
    };
    const answer = await bringInPlace(testbed.gateway, 'noisy', {}, { proof, headers });
    assert.deepEqual([answer.status, answer.bytes.toString()], [200, '{"noisy":true}']);
    const sent = testbed.backend.requests[0]?.headers;
    assert.equal(sent?.['accept-encoding'], 'identity');
    for (const name of ['if-none-match', 'range', 'if-range', 'cookie']) assert.equal(sent?.[name], undefined, name);
    const { headers: asked } = await get('/noisy', 'GET', { 'if-none-match': '*' });
    assert.deepEqual([asked['cache-control'], asked.vary, asked.etag], ['no-store', 'Accept', undefined]);
  });

  it('is refused before there is a price where path, query or precondition cannot be kept', async () => {
    for (const [path, headers, reason] of [
      ['/bytes?size=1&size=2', {}, undefined],
      ['/bytes?size=01', {}, undefined],
      ['/bytes?size=1.5', {}, undefined],
      ['/bytes?size=1&undeclared=yes', {}, undefined],
      ['/reports/Berlin', { 'if-match': '"1"' }, 'precondition'],
      ['/reports/Berlin?x=%ff', {}, undefined],
    ] as const) {
      const answer = await get(path, 'GET', headers);
      assert.equal(answer.status, 400, path);
      const { details } = assertEnvelope(answer, 'INPUT_INVALID') as { readonly details: { readonly reason?: string } };
      assert.equal(details.reason, reason);
      assert.equal(answer.headers['payment-required'], undefined);
    }
    // The schema says the rest, as on every channel.
    assert.equal((await get(`/reports/${'x'.repeat(65)}`)).status, 400);
  });

  it('is not there in another spelling, and its address serves its methods only', async () => {
    for (const path of ['/Reports/Berlin', '/reports/Berlin/', '//reports/Berlin', '/reports/a%2fb'])
      assertEnvelope(await get(path), 'NOT_FOUND');
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'QUERY']) {
      const answer = await get('/reports/Berlin', method);
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD, OPTIONS'], method);
    }
    const options = await get('/flaky/1', 'OPTIONS');
    assert.deepEqual([options.status, options.headers.allow], [204, 'GET, HEAD, POST, OPTIONS']);
  });

  it('never names the host that its caller names, and never logs its input', async () => {
    const { headers } = await get('/reports/Secret%20City', 'GET', { host: 'evil.test' });
    const offer = Buffer.from(String(headers['payment-required']), 'base64').toString();
    const { url } = (JSON.parse(offer) as { readonly resource: { readonly url: string } }).resource;
    assert.equal(url, `${testbed.gateway.config.merchant.publicBaseUrl}/reports/Secret%20City`);
    const log = testbed.gateway.logLines.join('');
    assert.ok(log.includes('"path":"/reports/{city}"'));
    assert.doesNotMatch(log, /Secret/);
  });
});
