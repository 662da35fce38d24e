import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ask, assertEnvelope } from '../../e2e/ask.ts';
import { type OriginTestbed, openOrigin } from './testbed.ts';

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

  for (const [name, value] of [
    ['if-match', '"1"'],
    ['if-unmodified-since', 'Tue, 01 Sep 2026 00:00:00 GMT'],
  ] as const)
    it(`paid, with ${name}: refused before there is a price`, async () => {
      const known = origin.calls.length;
      const answer = await ask(origin.url, { method: 'GET', path: '/reports/Berlin', headers: { [name]: value } });
      const { details } = assertEnvelope(answer, 'INPUT_INVALID');
      assert.deepEqual(details, { reason: 'precondition', field: name });
      assert.equal(origin.calls.length, known);
    });

  const REFUSED: readonly (readonly [what: string, path: string, init: RequestInit, details: object])[] = [
    ['a repeated scalar', '/reports/x?days=1&days=2', {}, { path: '$.days', keyword: 'query' }],
    ['a number with a sign', '/reports/x?days=%2B1', {}, { path: '$.days', keyword: 'type' }],
    ['a broken escape in the query', '/reports/x?days=%', {}, { path: '$', keyword: 'query' }],
    ['an empty parameter', '/reports/', {}, { path: '$.city', keyword: 'path' }],
  ];
  for (const [what, path, init, problem] of REFUSED)
    it(`with ${what} is refused before there is a price`, async () => {
      const known = origin.calls.length;
      const answer = await ask(origin.url, { method: 'GET', path, headers: {}, ...(init as object) });
      assert.equal(answer.status, 400, answer.text);
      const { details } = assertEnvelope(answer, 'INPUT_INVALID') as {
        details: { errors: readonly { path: string; keyword: string }[] };
      };
      const [first] = details.errors;
      assert.deepEqual({ path: first?.path, keyword: first?.keyword }, problem);
      assert.equal(origin.calls.length, known);
    });

  for (const [what, body, type, status] of [
    ['a list', '[]', 'application/json', 400],
    ['broken JSON', '{', 'application/json', 400],
    ['a repeated member', '{"count":1,"count":2}', 'application/json', 400],
    ['a form', 'count=1', 'application/x-www-form-urlencoded', 415],
  ] as const)
    it(`with ${what} for its body is refused`, async () => {
      const headers = { 'content-type': type };
      assert.equal((await ask(origin.url, { path: '/orders', headers, body })).status, status);
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
