import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { x402Client as AxiosClient, wrapAxiosWithPayment } from '@x402/axios';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import axios from 'axios';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { CURRENCY } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { callInPlace, soldInPlace } from '../support/in-place.ts';
import { eventsUntil, metadataOf, receiptWhen } from '../support/records.ts';
import { DOCUMENT_HEADERS } from '../support/sample-backend.ts';
import { openTestbed, quoteOf, type Testbed } from '../support/testbed.ts';
import { type Answered, ask, assertEnvelope } from './ask.ts';
import { type Brought, bring, failure, read, replayed } from './bring.ts';
import { found } from './proofs.ts';

/** `market_report` costs 0.01, most others 0.001 of a token with six decimals. */
const REPORT_UNITS = 10_000n;
const UNITS = 1_000n;
const BERLIN = { city: 'Berlin' };
const PROTOCOLS = { mcp: { enabled: true }, a2a: { enabled: true } };

/** A fresh proof for a resource, made from the 402 of its own address. */
async function proofInPlace({ gateway, buyer }: Pick<Testbed, 'gateway' | 'buyer'>, id: string, input: unknown) {
  const answer = await callInPlace(gateway, id, input);
  assert.equal(answer.status, 402);
  const { payment } = (await answer.json()) as { readonly payment: { readonly envelope: unknown } };
  return buyer.pay(payment.envelope);
}

/** A call in place with a proof. */
async function bringInPlace(
  gateway: Pick<TestGateway, 'url'>,
  id: string,
  input: unknown,
  { proof, headers = {} }: { readonly proof: string; readonly headers?: Readonly<Record<string, string>> },
): Promise<Brought> {
  return read(await callInPlace(gateway, id, input, { 'payment-signature': proof, ...headers }));
}

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
    const metrics = await (await fetch(`${gateway.managementUrl}/metrics`)).text();
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

describe('headers of the caller that are part of what is bought in place', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { backend: { originHeaders: ['cookie', 'authorization'] }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());
  const sent = () => testbed.backend.requests.at(-1)?.headers;

  it('go to the backend, and an answer to one cookie is never collected with another', async () => {
    const { gateway } = testbed;
    const proof = await proofInPlace(testbed, 'market_report', BERLIN);
    const mine = { cookie: 'session=mine', authorization: 'Bearer of the merchant' };
    const bought = await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers: mine });
    assert.equal(bought.status, 200);
    assert.deepEqual([sent()?.cookie, sent()?.authorization], [mine.cookie, mine.authorization]);
    await receiptWhen(gateway, bought.requestId, true);
    for (const headers of [{ ...mine, cookie: 'session=other' }, { cookie: mine.cookie }, {}])
      replayed(await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers }), 'used');
    replayed(await bring(gateway, 'market_report', BERLIN, { proof }), 'used');
    const again = await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers: mine });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
    assert.doesNotMatch(gateway.logLines.join(''), /session=|of the merchant/);
  });

  it('are sent again when what failed is collected', async () => {
    const headers = { cookie: 'session=again' };
    const proof = await proofInPlace(testbed, 'flaky', { failures: 1 });
    const input = { failures: 1 };
    failure(await bringInPlace(testbed.gateway, 'flaky', input, { proof, headers }), 502, 'BACKEND_ERROR');
    replayed(await bringInPlace(testbed.gateway, 'flaky', input, { proof }), 'used');
    assert.equal((await bringInPlace(testbed.gateway, 'flaky', input, { proof, headers })).status, 200);
    assert.equal(sent()?.cookie, 'session=again');
  });

  it('stay on this channel: invoke forwards none of them', async () => {
    const answer = await testbed.gateway.invoke('free_request_headers', {}, { cookie: 'session=mine' });
    assert.equal(answer.status, 200);
    assert.equal(sent()?.cookie, undefined);
  });
});

describe('a gateway that ends after the settlement of a call in place', () => {
  let testbed: Testbed;
  const home = mkdtempSync(join(tmpdir(), 'acg-in-place-'));
  const storage = { sqlite: { path: join(home, 'payments.db') } };
  const sold = { resources: soldInPlace(CURRENCY) };
  before(async () => {
    testbed = await openTestbed({ storage, overrides: sold });
  });
  after(async () => {
    await testbed?.close();
    rmSync(home, { recursive: true, force: true });
  });

  for (const [where, overrides, collect] of [
    ['in place', sold, bringInPlace],
    ['on invoke', sold, bring],
    ['on invoke, after the resource was removed', { resources: { held: undefined } }, bring],
  ] as const)
    it(`leaves an answer that the next one delivers ${where}: paid once`, async () => {
      const { backend, chain, buyer, gateway: config } = testbed;
      const payTo = config.config.x402?.payTo ?? '';
      const parts = { chain, backendUrl: backend.url, facilitator: { mode: 'local' }, storage, payTo } as const;
      const first = await openGateway({ ...parts, overrides: sold });
      const proof = await proofInPlace({ gateway: first, buyer }, 'held', {});
      const income = await testbed.income();
      backend.hold();
      const arrived = backend.nextRequest('/held');
      const lost = callInPlace(first, 'held', {}, { 'payment-signature': proof }).catch(() => undefined);
      await arrived;
      await first.close();
      await lost;
      backend.release();
      const second = await openGateway({ ...parts, overrides });
      try {
        const answer = await collect(second, 'held', {}, { proof });
        assert.deepEqual([answer.status, answer.bytes.toString()], [200, '{"held":true}']);
        assert.equal((await testbed.income()) - income, UNITS);
      } finally {
        await second.close();
      }
    });
});

describe('a free resource in place', () => {
  let testbed: Testbed;
  const DOCUMENT = {
    name: 'Document',
    backend: { method: 'GET', path: '/document' },
    pricing: { type: 'free' },
    expose: ['origin'],
  };
  before(async () => {
    const server = { allowedOrigins: ['https://page.example'] };
    testbed = await openTestbed({ overrides: { resources: { document: DOCUMENT }, server } });
  });
  after(() => testbed?.close());
  const get = (headers: Readonly<Record<string, string>>, method = 'GET'): Promise<Answered> =>
    ask(testbed.gateway.url, { method, path: '/document', headers });

  for (const [what, headers, status, text, range] of [
    ['whole', {}, 200, '0123456789', undefined],
    ['unchanged', { 'if-none-match': DOCUMENT_HEADERS.etag }, 304, '', undefined],
    ['in part', { range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
    ['outside', { range: 'bytes=20-21' }, 416, '', 'bytes */10'],
    ['changed', { 'if-match': '"2"' }, 412, '', undefined],
  ] as const)
    it(`${what}: ${status}`, async () => {
      const answer = await get(headers);
      assert.deepEqual([answer.status, answer.text, answer.headers['content-range']], [status, text, range]);
      assert.partialDeepStrictEqual(answer.headers, DOCUMENT_HEADERS);
    });

  it('HEAD: the head of the whole answer', async () => {
    const answer = await get({ range: 'bytes=2-4' }, 'HEAD');
    assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [200, '', '10']);
  });

  it('shows the payment headers to pages that are listed, and takes their preflights', async () => {
    const page = { origin: 'https://page.example' };
    const { headers } = await get(page);
    assert.equal(headers['access-control-allow-origin'], page.origin);
    assert.match(String(headers['access-control-expose-headers']), /payment-required, payment-response/);
    const preflight = await get({ ...page, 'access-control-request-method': 'GET' }, 'OPTIONS');
    assert.deepEqual(
      [preflight.status, preflight.headers['access-control-allow-methods']],
      [204, 'GET, HEAD, OPTIONS'],
    );
    assert.equal((await get({ origin: 'https://evil.test' })).status, 403);
  });
});

describe('a resource that is sold in place, where the rest passes', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { backend: { passthrough: { enabled: true } }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());

  it('is refused with its reason in another spelling', async () => {
    for (const [path, reason] of [
      ['/Reports/Berlin', 'path_spelling'],
      ['/reports/Berlin/', 'path_spelling'],
      ['//reports/Berlin', 'ambiguous_path'],
      ['/reports/a%2fb', 'ambiguous_path'],
    ] as const) {
      const answer = await ask(testbed.gateway.url, { method: 'GET', path, headers: {} });
      assert.deepEqual(assertEnvelope(answer, 'INPUT_INVALID')['details'], { reason }, path);
    }
    assert.equal((await callInPlace(testbed.gateway, 'market_report', BERLIN)).status, 402);
    assert.equal(testbed.backend.requests.length, 0);
  });
});

describe('the rate limit of calls in place', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { limits: { rate: { perSecond: 1, burst: 1 } }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed?.close());

  it('is the one of all channels: what is not paid counts, HEAD as well', async () => {
    const path = '/reports/Berlin';
    const answers = await Promise.all(
      ['GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD'].map((method) =>
        ask(testbed.gateway.url, { method, path, headers: {} }),
      ),
    );
    for (const { status, headers } of answers) {
      assert.ok(status === 402 || status === 429, `${status}`);
      assert.equal(headers['ratelimit-policy'], '"ip";q=1;w=1');
    }
    assert.ok(answers.some(({ status }) => status === 429));
  });
});
