import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { startRedis } from '../support/redis.ts';
import { openSeller, type Seller } from '../support/seller.ts';
import { OPERATOR_TOKEN } from '../support/shop.ts';

const schema = (name: string): object =>
  JSON.parse(readFileSync(new URL(`../../schemas/${name}.schema.json`, import.meta.url), 'utf8')) as object;
const isEnvelope = new Ajv2020({ strict: false, validateFormats: false }).compile(schema('error'));

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
interface Answered {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** A plain request: `fetch` would not send what some of these rows need. */
function ask(
  base: string,
  { method = 'POST', path, headers = { 'content-type': 'application/json' }, body }: Asked,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${base}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

interface Row extends Asked {
  readonly rule: string;
  readonly status: number;
  readonly code: string;
  readonly details?: unknown;
  readonly header?: readonly [name: string, value: string];
}

const INVOKE = '/api/resources/free_market_report/invoke';
const json = (value: unknown): string => JSON.stringify(value);

const ROWS: readonly Row[] = [
  {
    rule: 'malformed JSON',
    path: INVOKE,
    body: '{',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_json' },
  },
  { rule: 'a body that is no object', path: INVOKE, body: '[]', status: 400, code: 'INPUT_INVALID' },
  {
    rule: 'a name twice',
    path: INVOKE,
    body: '{"city":"a","city":"b"}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'duplicate_key' },
  },
  {
    rule: 'a name that reaches a prototype',
    path: INVOKE,
    body: '{"__proto__":{}}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'forbidden_key' },
  },
  {
    rule: 'an input that the schema refuses',
    path: INVOKE,
    body: json({ city: '' }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  { rule: 'an input property that is missing', path: INVOKE, body: '{}', status: 400, code: 'INPUT_INVALID' },
  {
    rule: 'an input property that nobody declared',
    path: INVOKE,
    body: json({ city: 'a', x: 1 }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a path parameter that climbs',
    path: INVOKE,
    body: json({ city: '..' }),
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a paid resource checks its input before its price',
    path: '/api/resources/market_report/invoke',
    body: '{}',
    status: 400,
    code: 'INPUT_INVALID',
  },
  {
    rule: 'a path that is not percent-encoded',
    path: '/api/resources/%zz/invoke',
    body: '{}',
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_path' },
  },
  {
    rule: 'a limit of 0',
    method: 'GET',
    path: '/api/events?limit=0',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'limit' },
  },
  {
    rule: 'a limit that is a fraction',
    method: 'GET',
    path: '/api/receipts?limit=1.5',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'limit' },
  },
  {
    rule: 'a cursor that is none',
    method: 'GET',
    path: '/api/events?cursor=x',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    status: 400,
    code: 'INPUT_INVALID',
    details: { field: 'cursor' },
  },
  {
    rule: 'no operator token',
    method: 'GET',
    path: '/api/events',
    headers: {},
    status: 401,
    code: 'UNAUTHORIZED',
    header: ['www-authenticate', 'Bearer'],
  },
  {
    rule: 'a wrong operator token',
    method: 'GET',
    path: '/api/receipts',
    headers: { authorization: 'Bearer wrong' },
    status: 401,
    code: 'UNAUTHORIZED',
    header: ['www-authenticate', 'Bearer'],
  },
  {
    rule: 'an operator token in the query',
    method: 'GET',
    path: `/api/receipts?token=${OPERATOR_TOKEN}`,
    headers: {},
    status: 401,
    code: 'UNAUTHORIZED',
  },
  {
    rule: 'a foreign origin',
    path: INVOKE,
    headers: { 'content-type': 'application/json', origin: 'https://evil.example' },
    body: json({ city: 'a' }),
    status: 403,
    code: 'FORBIDDEN',
  },
  {
    rule: 'an unknown resource',
    path: '/api/resources/nothing_here/invoke',
    body: '{}',
    status: 404,
    code: 'RESOURCE_NOT_FOUND',
  },
  {
    rule: 'a resource named like a member of every object',
    path: '/api/resources/constructor/invoke',
    body: '{}',
    status: 404,
    code: 'RESOURCE_NOT_FOUND',
  },
  {
    rule: 'an encoded slash in an id',
    path: '/api/resources/a%2Fb/invoke',
    body: '{}',
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'an encoded slash in an id, with another method',
    method: 'GET',
    path: '/api/resources/a%2Fb/invoke',
    headers: {},
    status: 404,
    code: 'NOT_FOUND',
  },
  { rule: 'no such route', method: 'GET', path: '/nowhere', headers: {}, status: 404, code: 'NOT_FOUND' },
  {
    rule: 'a trailing slash is another route',
    method: 'GET',
    path: '/api/resources/',
    headers: {},
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'another case is another route',
    method: 'GET',
    path: '/API/resources',
    headers: {},
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    rule: 'GET on invoke',
    method: 'GET',
    path: INVOKE,
    headers: {},
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    header: ['allow', 'POST'],
  },
  {
    rule: 'DELETE on the listing',
    method: 'DELETE',
    path: '/api/resources',
    headers: {},
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    header: ['allow', 'GET, HEAD'],
  },
  {
    rule: 'POST on a probe',
    path: '/health',
    body: '{}',
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    header: ['allow', 'GET, HEAD'],
  },
  {
    rule: 'a body one byte over the cap',
    path: INVOKE,
    body: Buffer.alloc(262_145, 0x20),
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
    details: { maxBytes: 262_144 },
    header: ['connection', 'close'],
  },
  {
    rule: 'a body of the cap is read',
    path: INVOKE,
    body: Buffer.alloc(262_144, 0x20),
    status: 400,
    code: 'INPUT_INVALID',
    details: { reason: 'malformed_json' },
  },
  {
    rule: 'a form',
    path: INVOKE,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'city=a',
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  {
    rule: 'JSON in another charset',
    path: INVOKE,
    headers: { 'content-type': 'application/json; charset=utf-16' },
    body: '{}',
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  { rule: 'a body without a type', path: INVOKE, headers: {}, body: '{}', status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' },
  {
    rule: 'a compressed body',
    path: INVOKE,
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: 'x',
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  {
    rule: 'a backend that fails',
    path: '/api/resources/free_failing/invoke',
    body: json({ status: 500 }),
    status: 502,
    code: 'BACKEND_ERROR',
    details: { status: 500 },
  },
  {
    rule: 'a backend that is silent',
    path: '/api/resources/free_silent/invoke',
    body: '{}',
    status: 504,
    code: 'BACKEND_TIMEOUT',
    details: { reason: 'timeout', timeoutMs: 500 },
  },
];

function assertEnvelope(answer: Answered, code: string): Record<string, unknown> {
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  const body = JSON.parse(answer.text) as Record<string, unknown>;
  assert.ok(isEnvelope(body), JSON.stringify(isEnvelope.errors));
  assert.equal(body['code'], code);
  assert.equal(body['requestId'], answer.headers['x-request-id']);
  assert.equal(answer.headers['x-powered-by'], undefined);
  return body;
}

describe('every failure is one envelope with the status of its code', () => {
  let seller: Seller;
  before(async () => {
    seller = await openSeller();
  });
  after(() => seller.close());

  for (const row of ROWS)
    it(`${row.code} ${row.status}: ${row.rule}`, async () => {
      const answer = await ask(seller.shop.url, row);
      assert.equal(answer.status, row.status, answer.text);
      const body = assertEnvelope(answer, row.code);
      if (row.details !== undefined) assert.deepEqual(body['details'], row.details);
      if (row.header !== undefined) assert.equal(answer.headers[row.header[0]], row.header[1]);
    });

  it('schema violations name their path, rule and nothing of the input', async () => {
    const answer = await ask(seller.shop.url, { path: INVOKE, body: json({ city: 7, secret: 'hunter2' }) });
    const { details } = JSON.parse(answer.text) as { details: { errors: { path: string; keyword: string }[] } };
    assert.ok(details.errors.some(({ path, keyword }) => path === '$.city' && keyword === 'type'));
    assert.ok(!answer.text.includes('hunter2'));
  });

  it('closed operator routes look exactly like no route', async () => {
    const closed = await openSeller({ overrides: { server: { adminToken: undefined } } });
    try {
      const headers = { 'x-request-id': 'same', authorization: 'Bearer anything' };
      for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD']) {
        const [route, none] = await Promise.all(
          ['/api/events', '/api/nowhere'].map((path) => ask(closed.shop.url, { method, path, headers })),
        );
        const { date: _one, ...routeHeaders } = route?.headers ?? {};
        const { date: _other, ...noneHeaders } = none?.headers ?? {};
        assert.deepEqual([route?.status, route?.text, routeHeaders], [404, none?.text, noneHeaders]);
      }
    } finally {
      await closed.close();
    }
  });

  it('a legal X-Request-Id is taken, any other replaced', async () => {
    const ids = {
      'my-id:1.2_3': true,
      [`${'x'.repeat(64)}`]: true,
      [`${'x'.repeat(65)}`]: false,
      'a b': false,
      ü: false,
    };
    for (const [id, taken] of Object.entries(ids)) {
      const answer = await ask(seller.shop.url, {
        method: 'GET',
        path: '/health',
        headers: { 'x-request-id': encodeLatin(id) },
      });
      if (taken) assert.equal(answer.headers['x-request-id'], id);
      else assert.match(answer.headers['x-request-id'] as string, /^req_[0-9a-f-]{36}$/);
    }
  });

  it('an empty body is the empty input, with and without a content type', async () => {
    for (const headers of [{ 'content-type': 'application/json' }, {}]) {
      const answer = await ask(seller.shop.url, { path: '/api/resources/cities/invoke', headers });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it('HEAD answers where GET does, without a body', async () => {
    for (const path of ['/health', '/ready', '/api/resources', '/.well-known/agent-commerce']) {
      const answer = await ask(seller.shop.url, { method: 'HEAD', path, headers: {} });
      assert.deepEqual([answer.status, answer.text], [200, '']);
      assert.ok(Number(answer.headers['content-length']) > 0);
    }
  });

  it('requests that no parser can read still get the envelope', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(seller.shop.url);
      import('node:net').then(({ connect }) => {
        const socket = connect(Number(port), hostname, () => socket.write('GARBAGE\r\n\r\n'));
        let text = '';
        socket.on('data', (chunk) => {
          text += chunk;
        });
        socket.on('close', () => resolve(text));
        socket.on('error', reject);
      }, reject);
    });
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 400 /);
    assert.ok(isEnvelope(JSON.parse(body)), body);
  });
});

describe('who may come in', () => {
  it('the next operator token works beside the present one', async () => {
    const seller = await openSeller({ overrides: { server: { adminTokenNext: 'the-next-token-of-the-tests' } } });
    try {
      for (const [token, status] of [
        [OPERATOR_TOKEN, 200],
        ['the-next-token-of-the-tests', 200],
        ['neither', 401],
      ] as const) {
        const headers = { authorization: `Bearer ${token}` };
        assert.equal((await ask(seller.shop.url, { method: 'GET', path: '/api/events', headers })).status, status);
      }
      const many = await ask(seller.shop.url, {
        method: 'GET',
        path: `/api/events?limit=${'9'.repeat(30)}`,
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      });
      assert.equal(many.status, 200, 'a limit beyond the largest is clamped');
    } finally {
      await seller.close();
    }
  });

  it('a host list keeps others out, but not probes', async () => {
    const seller = await openSeller({ overrides: { server: { allowedHosts: ['shop.example'] } } });
    try {
      const get = (path: string, host: string) => ask(seller.shop.url, { method: 'GET', path, headers: { host } });
      assert.equal((await get('/api/resources', 'shop.example')).status, 200);
      assert.equal((await get('/api/resources', 'SHOP.example')).status, 200);
      const other = await get('/api/resources', 'evil.example');
      assert.equal(other.status, 403);
      assertEnvelope(other, 'FORBIDDEN');
      assert.equal((await get('/health', '10.0.0.7:8402')).status, 200);
    } finally {
      await seller.close();
    }
  });
});

describe('failures that money is near', () => {
  it('callers who leave do not make room for more than the cap', async () => {
    const facilitator = await startHostileFacilitator('eip155:31337');
    const seller = await openSeller({
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: { limits: { maxInFlight: 2 } },
    });
    try {
      facilitator.script({ verify: () => ({ kind: 'hang' }) });
      const proofs = await Promise.all(
        Array.from({ length: 6 }, () => seller.proof('market_report', { city: 'Berlin' })),
      );
      for (const proof of proofs) {
        const leaving = AbortSignal.timeout(60);
        await fetch(`${seller.shop.url}/api/resources/market_report/invoke`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'payment-signature': proof },
          body: JSON.stringify({ city: 'Berlin' }),
          signal: leaving,
        }).then(
          (response) => response.arrayBuffer(),
          () => undefined,
        );
      }
      assert.equal(facilitator.calls.filter(({ path }) => path === '/verify').length, 2);
    } finally {
      await facilitator.stop();
      await seller.close();
    }
  });

  it('GATEWAY_BUSY 503 above the cap on calls in flight', async () => {
    const seller = await openSeller({ overrides: { limits: { maxInFlight: 1 } } });
    try {
      seller.merchant.hold();
      const arrived = seller.merchant.nextRequest('/held');
      const first = seller.shop.invoke('free_held');
      await arrived;
      const second = await ask(seller.shop.url, { path: '/api/resources/cities/invoke', body: '{}' });
      assert.equal(second.status, 503);
      assertEnvelope(second, 'GATEWAY_BUSY');
      assert.equal(second.headers['retry-after'], '1');
      assert.equal((await ask(seller.shop.url, { method: 'GET', path: '/health', headers: {} })).status, 200);
      seller.merchant.release();
      const admitted = await first;
      assert.equal(admitted.status, 200);
      await admitted.arrayBuffer();
      for (let call = 0; call < 3; call += 1) {
        const next = await seller.shop.invoke('cities');
        assert.equal(next.status, 200, 'places are given back');
        await next.arrayBuffer();
      }
    } finally {
      await seller.close();
    }
  });

  it('STORAGE_ERROR 503 before money moves, and never a replay, when the store is gone', async () => {
    const redis = await startRedis();
    const seller = await openSeller({ storage: { redis: { url: redis.url } } });
    try {
      const proof = await seller.proof('market_report', { city: 'Berlin' });
      await redis.stop();
      const answer = await seller.shop.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof });
      const body = (await answer.json()) as { code: string; retryable: boolean };
      assert.deepEqual([answer.status, body.code, body.retryable], [503, 'STORAGE_ERROR', true]);
      assert.equal(await seller.income(), 0n);
      const free = await seller.shop.invoke('cities');
      assert.equal(free.status, 200, 'free resources need no store');
      await free.arrayBuffer();
    } finally {
      await seller.close();
      await redis.stop();
    }
  });

  describe('a remote facilitator that gives no verdict', () => {
    it('PAYMENT_PROVIDER_UNAVAILABLE 503 before settlement, and the same proof works later', async () => {
      const facilitator = await startHostileFacilitator('eip155:31337');
      const seller = await openSeller({ facilitator: { mode: 'remote', url: facilitator.url } });
      try {
        facilitator.script({ verify: () => ({ kind: 'json', status: 500, body: { oops: true } }) });
        const proof = await seller.proof('market_report', { city: 'Berlin' });
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const answer = await seller.shop.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof });
          const body = (await answer.json()) as { code: string; retryable: boolean };
          assert.deepEqual([answer.status, body.code, body.retryable], [503, 'PAYMENT_PROVIDER_UNAVAILABLE', true]);
        }
        assert.equal(facilitator.calls.filter(({ path }) => path === '/settle').length, 0);
      } finally {
        await seller.close();
        await facilitator.stop();
      }
    });

    it('PAYMENT_SETTLEMENT_FAILED 502 after it: uncertain, with the time from which signing again is safe, never 402', async () => {
      const facilitator = await startHostileFacilitator('eip155:31337');
      const seller = await openSeller({ facilitator: { mode: 'remote', url: facilitator.url } });
      try {
        facilitator.script({ settle: () => ({ kind: 'reset' }) });
        const proof = await seller.proof('market_report', { city: 'Berlin' });
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const answer = await seller.shop.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof });
          const body = (await answer.json()) as { code: string; retryable: boolean; details: Record<string, unknown> };
          assert.deepEqual([answer.status, body.code, body.retryable], [502, 'PAYMENT_SETTLEMENT_FAILED', true]);
          assert.equal(answer.headers.get('retry-after'), '2');
          assert.equal(body.details['settlementUncertain'], true);
          assert.ok(Date.parse(String(body.details['resignSafeAt'])) > Date.now());
        }
      } finally {
        await seller.close();
        await facilitator.stop();
      }
    });
  });
});

function encodeLatin(id: string): string {
  return Buffer.from(id, 'utf8').toString('latin1');
}
