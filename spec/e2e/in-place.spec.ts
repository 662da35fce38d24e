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
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, metadataOf, receiptWhen } from '../support/records.ts';
import { DOCUMENT_HEADERS } from '../support/sample-backend.ts';
import { openTestbed, quoteOf, type Testbed } from '../support/testbed.ts';
import { type Answered, ask } from './ask.ts';
import { type Brought, bring, failure, read, replayed } from './bring.ts';
import { type Call, CHANNELS, type Reply } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';
import { found } from './proofs.ts';

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
    const log = gateway.logLines.join('');
    assert.ok(log.includes('"path":"/reports/{city}"') && !log.includes('Berlin'), log);
  });

  it('is bought by a client that accepts pages alone, in place and at its invoke URL', async () => {
    const { gateway, buyer } = testbed;
    const headers = { accept: 'text/html', 'content-type': 'application/json' };
    const income = await earned(async () => {
      for (const [path, init] of [
        ['/reports/Berlin', { headers }],
        ['/api/resources/market_report/invoke', { method: 'POST', headers, body: JSON.stringify(BERLIN) }],
      ] as const) {
        const unpaid = await fetch(gateway.url + path, init);
        assert.deepEqual([unpaid.status, unpaid.headers.get('content-type')], [402, 'text/html; charset=utf-8']);
        const paid = await buyer.fetch(gateway.url + path, init);
        assert.partialDeepStrictEqual(await paid.json(), BERLIN);
      }
    });
    assert.equal(income, 2n * REPORT_UNITS);
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

const GUARDED = { expose: ['http', 'origin'], authorization: { required: ['ap2'] } };

describe('a mandate of a call in place', () => {
  let testbed: MandateSeller;
  before(async () => {
    const resources = { market_report: GUARDED, free_greeting: GUARDED };
    testbed = await openMandateSeller(['market_report', 'free_greeting'], {}, { overrides: { resources } });
  });
  after(() => testbed?.close());

  /** In place is HTTP at another address. */
  const send = (
    call: Omit<Call, 'resourceId' | 'input'>,
    id = 'market_report',
    input: object = BERLIN,
  ): Promise<Reply> => {
    const { gateway } = testbed;
    const invoke: typeof gateway.invoke = (resourceId, given, headers) =>
      callInPlace(gateway, resourceId, given, headers);
    return CHANNELS.http({ ...gateway, invoke }, { resourceId: id, input, ...call });
  };
  const asked = async (): Promise<{ readonly proof: string; readonly mandate: string }> => {
    const { body } = await send({});
    assert.equal(body.code, 'PAYMENT_REQUIRED');
    const purchase = testbed.purchaseOf('market_report', 'Market report', BERLIN, '0.01');
    const proof = await testbed.buyer.pay(body.payment?.envelope);
    return { proof, mandate: testbed.mandateFor(body, { purchase, payment: true }).header };
  };
  const earned = async (run: () => Promise<unknown>): Promise<bigint> => {
    const income = await testbed.income();
    await run();
    return (await testbed.income()) - income;
  };

  it('is asked for beside the payment, and nothing moves without it', async () => {
    const { proof, mandate } = await asked();
    assert.equal(await earned(async () => assert.equal((await send({ proof })).code, 'AUTHORIZATION_REQUIRED')), 0n);
    const bought = await earned(async () => {
      const reply = await send({ proof, mandate });
      assert.equal(reply.code, undefined, reply.raw);
      assert.ok(reply.receipt !== undefined);
    });
    assert.equal(bought, REPORT_UNITS);
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
    testbed = await openTestbed({ overrides: { resources: { document: DOCUMENT } } });
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
});
