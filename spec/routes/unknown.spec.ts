import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { METHODS, pathOf, ROUTES, type Setting, WITHOUT } from './table.ts';
import { envelope, type Sent, send, sharedRoutes } from './world.ts';

/** What a caller without the right token may send to operator routes. */
const WRONG = [{}, { authorization: 'Basic YTpi' }, { 'last-event-id': 'x' }];

describe('a route whose setting is missing', () => {
  /** Everything of an answer that two answers to the same request id can share. */
  const seen = ({ status, headers, text }: Response): unknown => {
    const { date: _date, ...stable } = headers;
    return [status, stable, text];
  };

  for (const setting of Object.keys(WITHOUT) as Setting[])
    describe(setting, () => {
      const world = sharedRoutes(WITHOUT[setting]);

      for (const route of ROUTES)
        if (route.needs.includes(setting))
          it(`${route.path} looks exactly like no route, for every method`, async () => {
            const { headers = {}, body } = route.sent();
            for (const method of METHODS) {
              for (const given of [headers, ...(setting === 'an operator token' ? WRONG : [])]) {
                const sent: Sent = {
                  headers: { ...given, 'x-request-id': 'same' },
                  ...(method === 'POST' && body !== undefined ? { body } : {}),
                };
                const answer = await send(world().agents, method, route.path, sent);
                assert.equal(answer.status, 404);
                assert.deepEqual(seen(answer), seen(await send(world().agents, method, '/nowhere', sent)));
                if (method !== 'HEAD') envelope('NOT_FOUND')(answer);
              }
            }
          });

      it('leaves the other routes as they are', async () => {
        for (const route of ROUTES.filter(({ needs }) => !needs.includes(setting))) {
          const path = await pathOf(route, world().agents);
          assert.equal((await send(world()[route.app], route.method, path, route.sent())).status, route.status, path);
        }
      });
    });
});

describe('an adapter at another mount', () => {
  const world = sharedRoutes({ protocols: { mcp: { mountPath: '/tools' } } });

  it('is served there, and not at its usual one', async () => {
    const sent = {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    };
    await send(world().agents, 'POST', '/tools', sent).expect(200);
    await send(world().agents, 'POST', '/mcp', sent).expect(404).expect(envelope('NOT_FOUND'));
  });
});

/** Near to routes, and none. */
const NOWHERE = [
  ...['//', '/nowhere', '/favicon.ico', '/robots.txt', '/index.html', '/api', '/api/', '/.well-known'],
  ...['/api/resource', '/api/resources/', '/api/resources//invoke', '/api/resources/cities/invoke/x'],
  ...['/api/events/streams', '/api/events/evt_1-1', '/mcp/x', '/a2a/x', '/a2a//', '/acpx', '/consoles', '/healthz'],
  ...['/actuator', '/debug', '/debug/pprof/', '/heapdump', '/json/list', '/admin'],
];

describe('a resource that is not in the list', () => {
  const world = sharedRoutes();

  it('has no entry, and still the methods of one', async () => {
    for (const id of ['nowhere', '__proto__', 'cities%20', '%63ities.']) {
      const path = `/api/resources/${id}`;
      await send(world().agents, 'GET', path).expect(404).expect(envelope('RESOURCE_NOT_FOUND'));
      await send(world().agents, 'HEAD', path).expect(404);
      await send(world().agents, 'POST', path).expect(405).expect('allow', 'GET, HEAD');
    }
  });
});

describe('a path that is no route', () => {
  const world = sharedRoutes();

  for (const app of ['agents', 'management'] as const)
    for (const path of NOWHERE)
      it(`${path} of the app for ${app} is 404 for every method, with a body, and with a token`, async () => {
        const authorization = `Bearer ${OPERATOR_TOKEN}`;
        const body = { headers: { 'content-type': 'text/plain' }, body: 'text' };
        for (const [method, sent] of [
          ...METHODS.map((method) => [method, {}] as const),
          ...[['GET', { headers: { authorization } }] as const, ['POST', body] as const, ['PUT', body] as const],
        ]) {
          const answer = await send(world()[app], method, path, sent);
          assert.deepEqual([answer.status, answer.headers['allow']], [404, undefined], method);
          if (method !== 'HEAD') envelope('NOT_FOUND')(answer);
        }
      });
});
