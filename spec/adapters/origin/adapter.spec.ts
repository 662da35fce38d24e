import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { type RequestHandler, Router } from 'express';
import { paymentPages } from '../../../src/adapters/http/payment-page.ts';
import { originAdapter } from '../../../src/adapters/origin/adapter.ts';
import { openRoutes } from '../../../src/app/open-routes.ts';
import { noRoute } from '../../../src/app/plain-express.ts';
import { onlyInPlace, takeRoute } from '../../../src/passthrough/route.ts';
import { compileOffers } from '../../../src/payments/x402/wire/offers.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import { callAt, currentCall, type ReceivedCall } from '../../../src/pipeline/call.ts';
import { compileCatalogue } from '../../../src/resources/catalogue.ts';
import { sendJson } from '../../../src/server/http/respond.ts';
import { type Changes, load } from '../../config/document/document.ts';
import { type Answered, ask, assertEnvelope } from '../../e2e/ask.ts';
import { tokensUnder } from '../../payments/settlement/tokens.ts';
import { openBareListener } from '../../server/http/bare-listener.ts';

/** What runs, and the calls that the adapter received. */
interface OriginTestbed {
  readonly url: string;
  readonly calls: readonly ReceivedCall[];
  /** The call of the request that is sent, when there is one. */
  received(path: string, init?: RequestInit): Promise<{ readonly status: number; readonly call?: ReceivedCall }>;
  close(): void;
}

/**
 * Opens the adapter behind its routes, without the pipeline. `after`: what gets a received call; it
 * answers 200 unless given.
 */
async function openOrigin(changes: Changes, after: RequestHandler = answered): Promise<OriginTestbed> {
  const config = load(changes);
  const catalogue = compileCatalogue(config);
  const routeOf = openRoutes(config, catalogue);
  if (routeOf === undefined) throw new Error('nothing is sold in place');
  const calls: ReceivedCall[] = [];
  const { originHeaders } = config.backend;
  const offers = compileOffers(config, tokensUnder());
  const pages = paymentPages({ resources: catalogue.byId, offers, lists: [] });
  const adapter = originAdapter({ catalogue, pages, originHeaders, publicBaseUrl: config.merchant.publicBaseUrl });
  const note: RequestHandler = (_req, res, next) => {
    calls.push(currentCall(res) as ReceivedCall);
    next();
  };
  const sale = Router().use([adapter, note, after]);
  const listener = await openBareListener([takeRoute(routeOf, noRoute), onlyInPlace(sale)]);
  return {
    url: listener.url,
    calls,
    async received(path, init) {
      const known = calls.length;
      const answer = await fetch(`${listener.url}${path}`, init);
      await answer.arrayBuffer();
      const call = calls[known];
      return { status: answer.status, ...(call === undefined ? {} : { call }) };
    },
    close: () => listener.close(),
  };
}

const answered: RequestHandler = (_req, res) => sendJson(res, 200, '{}');

const PAID = { type: 'fixed', amount: '0.01', currency: 'USDC' };
const REPORT = {
  name: 'Report',
  inputSchema: {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'integer' },
      tags: { type: 'array', items: { type: 'string' } },
    },
    required: ['city'],
  },
  backend: { method: 'GET', path: '/reports/{city}' },
  pricing: PAID,
  expose: ['http', 'origin'],
};
const ORDER = {
  ...REPORT,
  inputSchema: { type: 'object', properties: { shop: { type: 'string' }, count: { type: 'number' } }, required: [] },
};
const RESOURCES = {
  'resources.report': REPORT,
  'resources.remove': { ...REPORT, backend: { method: 'DELETE', path: '/reports/{city}' } },
  'resources.order': { ...ORDER, backend: { method: 'POST', path: '/orders' } },
  'resources.cities': {
    name: 'Cities',
    backend: { method: 'GET', path: '/cities' },
    pricing: { type: 'free' },
    expose: ['origin'],
  },
  'backend.originHeaders': ['cookie', 'authorization'],
};
const json = (body: string): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body,
});

describe('a request at the address of something sold', () => {
  let origin: OriginTestbed;
  before(async () => {
    origin = await openOrigin(RESOURCES);
  });
  after(() => origin.close());

  it('is a call of the channel origin, its input read from path and query', async () => {
    const { call } = await origin.received('/reports/S%C3%A3o%20Paulo?days=3&tags=a&tags=b&utm=x');
    assert.deepEqual([call?.channel, call?.resourceId], ['origin', 'report']);
    assert.deepEqual(call?.input, { city: 'São Paulo', days: 3, tags: ['a', 'b'] });
    assert.equal(call?.rawInput, undefined);
  });

  it('has its JSON body as the input, with the bytes that came', async () => {
    const { call } = await origin.received('/orders', json('{ "count": 1.0 }'));
    assert.deepEqual(call?.input, { count: 1 });
    assert.equal(Buffer.from(call?.rawInput ?? []).toString(), '{ "count": 1.0 }');
  });

  it('without a body has the empty input', async () => {
    assert.deepEqual((await origin.received('/orders', { method: 'POST' })).call?.input, {});
  });

  it('carries proof, mandate and key in the headers of HTTP', async () => {
    const headers = { 'payment-signature': 'proof', 'agent-authorization': 'mandate', 'idempotency-key': 'key' };
    const { call } = await origin.received('/reports/Berlin', { headers });
    assert.deepEqual(
      [call?.proof, call?.mandate, call?.idempotencyKey],
      [{ kind: 'header', value: 'proof' }, { kind: 'text', value: 'mandate' }, 'key'],
    );
  });

  it('as HEAD carries nothing that could buy', async () => {
    const headers = { 'payment-signature': 'proof', 'agent-authorization': 'mandate', 'idempotency-key': 'key' };
    const { call } = await origin.received('/reports/Berlin', { method: 'HEAD', headers });
    assert.deepEqual(
      [call?.proof, call?.mandate, call?.idempotencyKey],
      [{ kind: 'none' }, { kind: 'none' }, undefined],
    );
  });

  it('is named in the challenge by the configured URL, whatever Host says', async () => {
    for (const host of ['evil.test', '127.0.0.1']) {
      const known = origin.calls.length;
      await ask(origin.url, { method: 'GET', path: '/reports/z%c3%bcrich?x=1', headers: { host } });
      assert.equal(origin.calls[known]?.inPlace?.url, 'https://api.shop.example/reports/z%C3%BCrich');
    }
    const long = await origin.received(`/reports/${'x'.repeat(1_024)}`);
    assert.deepEqual([long.call?.inPlace?.url, long.status], [undefined, 200]);
  });

  it('brings the headers that are configured, and no others', async () => {
    const headers = { cookie: 'a=b', authorization: 'Bearer theirs', accept: 'x/y', 'x-other': '1' };
    const { call } = await origin.received('/reports/Berlin', { headers });
    assert.deepEqual(call?.inPlace?.callerHeaders, { cookie: 'a=b', authorization: 'Bearer theirs' });
    assert.deepEqual((await origin.received('/reports/Berlin')).call?.inPlace?.callerHeaders, {});
  });

  const ASKED = { 'if-none-match': '"1"', 'if-modified-since': 'Tue, 01 Sep 2026 00:00:00 GMT', range: 'bytes=0-1' };
  it('paid: has no preconditions and no range', async () => {
    const { call, status } = await origin.received('/reports/Berlin', { headers: { ...ASKED, 'if-range': '"1"' } });
    assert.deepEqual([status, call?.inPlace?.conditions], [200, {}]);
  });
  it('free: has those that came; a HEAD has no range', async () => {
    const headers = { ...ASKED, 'if-match': '*' };
    assert.deepEqual((await origin.received('/cities', { headers })).call?.inPlace?.conditions, headers);
    const { range: _, ...rest } = headers;
    assert.deepEqual((await origin.received('/cities', { method: 'HEAD', headers })).call?.inPlace?.conditions, rest);
  });

  it('paid, with a strict precondition: refused before there is a price', async () => {
    const known = origin.calls.length;
    for (const name of ['if-match', 'if-unmodified-since']) {
      const answer = await ask(origin.url, { method: 'GET', path: '/reports/Berlin', headers: { [name]: '"1"' } });
      const { details } = assertEnvelope(answer, 'INPUT_INVALID');
      assert.deepEqual(details, { reason: 'precondition', field: name });
    }
    assert.equal(origin.calls.length, known);
  });

  it('with an input that can be read in two ways is refused before there is a price', async () => {
    const known = origin.calls.length;
    for (const [path, problem] of [
      ['/reports/x?days=1&days=2', { path: '$.days', keyword: 'query' }],
      ['/reports/x?days=%2B1', { path: '$.days', keyword: 'type' }],
      ['/reports/x?days=1.5', { path: '$.days', keyword: 'type' }],
      ['/reports/x?y=%ff', { path: '$', keyword: 'query' }],
      ['/reports/x?days=%', { path: '$', keyword: 'query' }],
      ['/reports/', { path: '$.city', keyword: 'path' }],
    ] as const) {
      const answer = await ask(origin.url, { method: 'GET', path, headers: {} });
      assert.equal(answer.status, 400, answer.text);
      const { details } = assertEnvelope(answer, 'INPUT_INVALID');
      assert.partialDeepStrictEqual(details, { errors: [problem] });
    }
    assert.equal(origin.calls.length, known);
  });

  it('with a body that is no JSON object is refused', async () => {
    for (const [body, type, status] of [
      ['[]', 'application/json', 400],
      ['{', 'application/json', 400],
      ['{"count":1,"count":2}', 'application/json', 400],
      ['count=1', 'application/x-www-form-urlencoded', 415],
    ] as const)
      assert.equal(
        (await ask(origin.url, { path: '/orders', headers: { 'content-type': type }, body })).status,
        status,
      );
  });

  it('is no DELETE with a body', async () => {
    const answer = await ask(origin.url, {
      method: 'DELETE',
      path: '/reports/x',
      headers: { 'content-length': '2' },
      body: '{}',
    });
    assert.deepEqual(assertEnvelope(answer, 'INPUT_INVALID')['details'], { reason: 'unexpected_body' });
    assert.equal((await origin.received('/reports/x', { method: 'DELETE' })).call?.resourceId, 'remove');
  });

  it('is answered with its methods when they are asked for, or others are used', async () => {
    const allow = 'GET, HEAD, DELETE, OPTIONS';
    const asked = await ask(origin.url, { method: 'OPTIONS', path: '/reports/Berlin', headers: {} });
    assert.deepEqual([asked.status, asked.headers.allow, asked.text], [204, allow, '']);
    for (const method of ['POST', 'PUT', 'PATCH', 'QUERY']) {
      const answer = await ask(origin.url, { method, path: '/reports/Berlin', headers: {} });
      assert.deepEqual([answer.status, answer.headers.allow], [405, allow], method);
    }
  });
});

const NAME = `<script>alert("1")</script> & 'more'`;
const REPORTS = {
  'resources.report.name': NAME,
  'resources.report.expose': ['http', 'origin'],
  'backend.originHeaders': ['cookie', 'accept'],
};

describe('an answer in place', () => {
  let origin: OriginTestbed;
  const ETAG = { etag: '"1"', 'accept-ranges': 'bytes', 'content-range': 'bytes 0-1/9', 'content-length': '2' };
  before(async () => {
    origin = await openOrigin(REPORTS, async (req, res) => {
      const { responseWriter } = callAt(res, 'received');
      const paid = req.headers['x-paid'] !== undefined;
      const answer = { status: 200, headers: ETAG, body: Readable.from([Buffer.from('ab')]) };
      await responseWriter.relay(answer, paid ? { payment: { success: true } as PaymentResponse } : {});
    });
  });
  after(() => origin.close());
  const get = (headers: Readonly<Record<string, string>>, method = 'GET'): Promise<Answered> =>
    ask(origin.url, { method, path: '/reports/Berlin', headers });

  it('free: passes the fields of ranges, and says which headers it depends on', async () => {
    const { headers, text } = await get({});
    assert.deepEqual([headers['accept-ranges'], headers['content-range']], ['bytes', 'bytes 0-1/9']);
    assert.deepEqual([headers.vary, text], ['cookie, accept', 'ab']);
  });

  it('paid: has no ranges, and no cache keeps it', async () => {
    const { headers } = await get({ 'x-paid': '1' });
    assert.deepEqual([headers['accept-ranges'], headers['content-range']], ['none', undefined]);
    assert.equal(headers['cache-control'], 'private, no-store');
  });

  it('free, to a HEAD: the head of the answer without its body', async () => {
    const answer = await get({}, 'HEAD');
    assert.deepEqual([answer.status, answer.headers['content-length'], answer.text], [200, '2', '']);
  });
});
