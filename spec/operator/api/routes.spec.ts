import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import express, { type RequestHandler, Router } from 'express';
import { authenticate } from '../../../src/operator/api/routes.ts';
import { MAX_FAILED_ATTEMPTS } from '../../../src/server/rate-limit/failed-attempts.ts';
import { type Answered, ask, assertEnvelope } from '../../e2e/ask.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';

describe('operator tokens', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { server: { trustProxy: 1 } } });
  });
  after(() => testbed.close());

  const get = (path: string, client: string, authorization?: string): Promise<Answered> =>
    ask(testbed.gateway.url, {
      method: 'GET',
      path,
      headers: { 'x-forwarded-for': client, ...(authorization === undefined ? {} : { authorization }) },
    });

  it(`${MAX_FAILED_ATTEMPTS} wrong ones are answered 401, then 429; a right one always passes`, async () => {
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) {
      const answer = await get('/api/events', '203.0.113.1', `Bearer guess-${tries}`);
      assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Bearer']);
    }
    const limited = await get('/api/receipts', '203.0.113.1', 'Bearer guess-again');
    assert.equal(limited.status, 429);
    assertEnvelope(limited, 'RATE_LIMITED');
    assert.ok(Number(limited.headers['retry-after']) > 0 && Number(limited.headers['retry-after']) <= 60);
    assert.equal(limited.headers['www-authenticate'], undefined);
    assert.equal((await get('/api/events', '203.0.113.1', `Bearer ${OPERATOR_TOKEN}`)).status, 200);
    assert.equal((await get('/api/events', '203.0.113.2', 'Bearer guess')).status, 401, 'others are not meant');
  });

  it('a request without a token is no guess', async () => {
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS + 2; tries += 1)
      assert.equal((await get('/api/events', '203.0.113.3')).status, 401);
  });

  const OTHER_WAYS: readonly (readonly [rule: string, path: string, authorization: string | undefined])[] = [
    ['a query parameter', `/api/events?token=${OPERATOR_TOKEN}&access_token=${OPERATOR_TOKEN}`, undefined],
    ['another scheme', '/api/events', `Basic ${OPERATOR_TOKEN}`],
    ['no scheme', '/api/events', OPERATOR_TOKEN],
    ['two tokens in one header', '/api/events', `Bearer ${OPERATOR_TOKEN}, Bearer ${OPERATOR_TOKEN}`],
    ['a token with something behind it', '/api/events', `Bearer ${OPERATOR_TOKEN} x`],
    ['the beginning of a token', '/api/events', `Bearer ${OPERATOR_TOKEN.slice(0, -1)}`],
    ['a token of more than 512 characters', '/api/events', `Bearer ${'x'.repeat(513)}`],
  ];
  for (const [rule, path, authorization] of OTHER_WAYS)
    it(`${rule} is no token`, async () =>
      assert.equal((await get(path, `198.51.100.${rule.length}`, authorization)).status, 401));
});

describe('operator routes without a configured token', () => {
  let closed: Testbed;
  before(async () => {
    closed = await openTestbed({ overrides: { server: { adminToken: undefined } } });
  });
  after(() => closed.close());

  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'])
    it(`${method} looks exactly as on a route that is none, also with tokens`, async () => {
      for (const path of ['/api/events', '/api/receipts', '/api/events/stream'])
        for (const authorization of [undefined, 'Bearer anything', `Bearer ${'x'.repeat(600)}`]) {
          const headers = { 'x-request-id': 'same', ...(authorization === undefined ? {} : { authorization }) };
          const [route, none] = await Promise.all(
            [path, '/api/nowhere'].map((asked) => ask(closed.gateway.url, { method, path: asked, headers })),
          );
          const { date: _one, ...routeHeaders } = route?.headers ?? {};
          const { date: _other, ...noneHeaders } = none?.headers ?? {};
          assert.deepEqual([route?.status, route?.text, routeHeaders], [404, none?.text, noneHeaders]);
        }
    });

  it('leave their router as unknown routes do', async () => {
    const passed: string[] = [];
    const step =
      (name: string): RequestHandler =>
      (_req, _res, next) => {
        passed.push(name);
        next();
      };
    const router = Router();
    router.all('/closed', authenticate([]), step('behind'));
    const app = express();
    app.use(router, step('after'), (_req, res) => res.end());
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await ask(`http://127.0.0.1:${port}`, { method: 'GET', path: '/closed', headers: {} });
    server.close();
    assert.deepEqual(passed, ['after']);
  });
});
