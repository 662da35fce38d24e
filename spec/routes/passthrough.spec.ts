import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { PUBLISHED_NAMES } from '../../src/resources/published.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { answeredMethods, METHODS, pathOf, ROUTES, type Setting, WITHOUT } from './table.ts';
import { envelope, overlaid, type Sent, send, sharedRoutes } from './world.ts';

const ON = { backend: { passthrough: { enabled: true } } };
/** TRACE would show a caller the headers that proxies add. */
const PASSING = METHODS.filter((method) => method !== 'TRACE');
const PASSED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const BODY = { headers: { 'content-type': 'text/plain' }, body: 'any text' };
/** What the sample backend says where it has nothing. */
const BACKEND_404 = '{"error":"no such path"}';

type World = ReturnType<typeof sharedRoutes>;

/** Asks, and checks that the backend was asked the same and its answer came back. */
async function assertPasses(world: World, method: string, path: string, sent: Sent = {}): Promise<Response> {
  const { agents, backend } = world();
  backend.forget();
  const answer = await send(agents, method, path, sent);
  assert.deepEqual(
    backend.requests.map((request) => [request.method, request.url, request.body.toString()]),
    [[method, path, sent.body?.toString() ?? '']],
    `${method} ${path}: ${answer.text}`,
  );
  if (answer.status === 404 && method !== 'HEAD') assert.equal(answer.text, BACKEND_404);
  return answer;
}

/** Asks, and checks that the gateway answered by itself. */
async function assertStays(world: World, method: string, path: string, sent: Sent = {}): Promise<Response> {
  const { agents, backend } = world();
  backend.forget();
  const answer = await send(agents, method, path, sent);
  assert.deepEqual(backend.requests, [], `${method} ${path}`);
  return answer;
}

describe('the console where the rest passes', () => {
  const world = sharedRoutes(overlaid(ON, { merchant: { publicBaseUrl: 'https://shop.example' } }));

  it('is refused at the host of the passed pages, and served at others', async () => {
    const at = (host: string, path: string) => send(world().agents, 'GET', path, { headers: { host } });
    for (const path of ['/console', '/console/console.js'])
      for (const host of ['shop.example', 'SHOP.example', 'shop.example:443'])
        envelope('FORBIDDEN')(await at(host, path).expect(403));
    for (const host of ['localhost:8402', 'shop.example:8402']) await at(host, '/console').expect(200);
  });
});

describe('where the rest passes, a path that is no route', () => {
  const world = sharedRoutes(overlaid(ON, { backend: { passthrough: { exclude: ['/staff', '/users/{id}/notes'] } } }));

  for (const path of [
    ...['/', '//', '/nowhere', '/nowhere?x=%zz&y', '/favicon.ico', '/api', '/api/', '/api/resource', '/.well-known'],
    ...['/.well-known/security.txt', '/health/', '/HEALTH', '/%68ealth', '//ready', '/mcpx', '/consoles', '/acpx'],
    ...['/a//b', '/caf%E9', '/files/a%2Fb', '/x;jsessionid=1', '/search?back=/places/Berlin', '/reports'],
    ...['/metrics', '/drain', '/admin', '/users/7'],
  ])
    it(`${path} passes as it is written, with every method but TRACE, and with a body`, async () => {
      for (const method of PASSING) await assertPasses(world, method, path);
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) await assertPasses(world, method, path, BODY);
      const trace = await assertStays(world, 'TRACE', path);
      envelope('METHOD_NOT_ALLOWED')(trace);
      assert.equal(trace.headers['allow'], PASSED_METHODS);
    });

  it('has the answer of the backend under a request id of the gateway', async () => {
    const headers = { 'x-request-id': 'chosen' };
    const chosen = await assertPasses(world, 'GET', '/weather/Berlin', { headers });
    assert.deepEqual([chosen.status, chosen.text], [200, '{"city":"Berlin","sky":"clear"}']);
    assert.equal(chosen.headers['content-type'], 'application/json');
    assert.equal(chosen.headers['x-request-id'], 'chosen');
    assert.equal(world().backend.requests[0]?.headers['x-request-id'], 'chosen');
    const minted = await assertPasses(world, 'GET', '/', { headers: { 'x-request-id': 'a b' } });
    assert.match(String(minted.headers['x-request-id']), /^req_[0-9a-f-]{36}$/);
    assert.equal(world().backend.requests[0]?.headers['x-request-id'], minted.headers['x-request-id']);
    assert.deepEqual([minted.headers['content-type'], minted.headers['vary']], ['text/html; charset=utf-8', undefined]);
    assert.deepEqual([minted.headers['x-powered-by'], minted.headers['cache-control']], [undefined, undefined]);
  });

  for (const path of ['/staff', '/staff/', '/STAFF', '/%73taff', '/staff/rota?x', '/users/7/notes', '/Users/7/notes/1'])
    it(`${path} is excluded: 404 with every method`, async () => {
      for (const method of PASSING) {
        const answer = await assertStays(world, method, path);
        assert.equal(answer.status, 404, method);
        if (method !== 'HEAD') envelope('NOT_FOUND')(answer);
      }
    });

  const GUARDED: readonly (readonly [path: string, status: number, reason: string | undefined])[] = [
    ['/Reports/Berlin', 400, 'path_spelling'],
    ['//reports/Berlin', 400, 'ambiguous_path'],
    // Sold over other channels only.
    ['/prices.csv', 404, undefined],
    ['/slow', 404, undefined],
  ];
  for (const [path, status, reason] of GUARDED)
    it(`${path} could be what is sold: ${status} with every method, and never at the backend`, async () => {
      for (const method of METHODS) {
        const answer = await assertStays(world, method, path);
        assert.equal(answer.status, status, method);
        if (method !== 'HEAD')
          envelope(
            status === 400 ? 'INPUT_INVALID' : 'NOT_FOUND',
            reason === undefined ? undefined : { reason },
          )(answer);
      }
    });
});

/** What is published is the backend's unless it is listed. */
const LISTED = overlaid(ON, { publish: PUBLISHED_NAMES });

describe('where the rest passes, a route of the gateway', () => {
  const world = sharedRoutes(LISTED);

  for (const route of ROUTES.filter(({ app }) => app === 'agents')) {
    const allowed = answeredMethods(ROUTES.filter(({ app, path }) => app === route.app && path === route.path));
    const others = METHODS.filter((method) => !allowed.includes(method));
    const isFreeAddress = route.matchedBy === 'address' && route.status !== 402;

    it(`${route.method} ${route.path} answers as it does where nothing passes`, async () => {
      const path = await pathOf(route, world().agents);
      const { status, headers } = await send(world().agents, route.method, path, route.sent());
      assert.equal(status, route.status);
      assert.equal(headers['cache-control'], route.cacheControl);
      assert.equal(headers['vary'], route.headers['vary']);
    });

    if (isFreeAddress)
      it(`${route.path} passes ${others.join(', ')} but TRACE: what is free has no other address`, async () => {
        for (const method of others.filter((other) => other !== 'TRACE')) await assertPasses(world, method, route.path);
        await send(world().agents, 'TRACE', route.path).expect(405).expect('allow', PASSED_METHODS);
      });
    else
      it(`${route.method} ${route.path} never passes by ${others.join(', ')}: 405 of the gateway`, async () => {
        const path = await pathOf(route, world().agents);
        for (const method of others) {
          const { status, headers } = await assertStays(world, method, path, { headers: route.sent().headers ?? {} });
          assert.deepEqual([status, headers['allow']], [405, route.allow], method);
        }
      });
  }

  for (const path of [
    ...['/api/resources/', '/api/resources/cities/x', '/api/resources/cities/invoke/x', '/api/events/evt_1', '/mcp/x'],
    ...['/console/files.ts', '/a2a/x', '/acp', '/api/receipts/', '/console/'],
  ])
    it(`${path} is below one: 404 of the gateway with every method`, async () => {
      for (const method of METHODS) assert.equal((await assertStays(world, method, path)).status, 404, method);
    });

  for (const path of ['/admin', '/admin/users', '/actuator/env', '/debug', '/metrics', '/.git/config', '/ADMIN/'])
    it(`${path} is not one, and is excluded unless paths are named: 404`, async () => {
      for (const method of PASSING) assert.equal((await assertStays(world, method, path)).status, 404, method);
    });
});

describe('where the rest passes, a route whose setting is missing', () => {
  for (const setting of Object.keys(WITHOUT) as Setting[])
    describe(setting, () => {
      const world = sharedRoutes(overlaid(LISTED, WITHOUT[setting]));
      const missing = ROUTES.filter(({ needs }) => needs.includes(setting));
      const isOwn = (path: string): boolean => /^\/(?:api\/(?:resources|receipts|events)|console)(?:\/|$)/.test(path);

      for (const route of missing)
        if (route.status === 402 && route.matchedBy === 'address')
          it(`${route.path} is sold elsewhere: 404 with every method`, async () => {
            for (const method of METHODS) {
              const answer = await assertStays(world, method, route.path);
              assert.equal(answer.status, 404, method);
            }
          });
        else if (isOwn(route.path))
          it(`${route.path} looks like any 404 of the gateway, for every method`, async () => {
            const { headers = {}, body } = route.sent();
            for (const method of METHODS) {
              const sent: Sent = {
                headers: { ...headers, 'x-request-id': 'same' },
                ...(method === 'POST' && body !== undefined ? { body } : {}),
              };
              const answer = await assertStays(world, method, route.path, sent);
              assert.deepEqual(seen(answer), seen(await assertStays(world, method, '/api/resources/nowhere/x', sent)));
              assert.equal(answer.status, 404);
            }
          });
        else
          it(`${route.path} is the backend's`, async () => {
            const path = route.path.replace('{checkout_session_id}', 'cs_1');
            for (const method of PASSING) await assertPasses(world, method, path);
          });

      it('leaves the other routes as they are', async () => {
        for (const route of ROUTES.filter(({ app, needs }) => app === 'agents' && !needs.includes(setting))) {
          const path = await pathOf(route, world().agents);
          assert.equal((await send(world().agents, route.method, path, route.sent())).status, route.status, path);
        }
      });
    });

  /** Everything of an answer that two answers to the same request id can share. */
  function seen({ status, headers, text }: Response): unknown {
    const { date: _date, ...stable } = headers;
    return [status, stable, text];
  }
});

/** Contract 1.2, NOT_FOUND: both answers differ by the request id alone. */
describe('operator routes without a token', () => {
  const CLOSED = [
    '/api/receipts',
    '/api/receipts/',
    '/api/receipts/1',
    '/api/events',
    '/api/events/stream',
    '/console',
  ];
  const TOKENS = [{}, { authorization: `Bearer ${OPERATOR_TOKEN}` }, { authorization: 'Bearer x' }];
  const answersOf = async (world: World, path: string): Promise<readonly (readonly [number, string | undefined])[]> => {
    const answers = METHODS.flatMap((method) =>
      TOKENS.map(async (token) => {
        const headers = { ...token, 'x-request-id': 'same' };
        const { status, text } = await send(world().agents, method, path, { headers });
        return [status, text] as const;
      }),
    );
    return Promise.all(answers);
  };
  const off = sharedRoutes(WITHOUT['an operator token']);
  const on = sharedRoutes(overlaid(WITHOUT['an operator token'], ON));

  it('look like no route where nothing passes', async () => {
    const nowhere = await answersOf(off, '/nowhere');
    for (const [status] of nowhere) assert.equal(status, 404);
    for (const path of CLOSED) assert.deepEqual(await answersOf(off, path), nowhere, path);
  });

  it('stay the same 404 of the gateway where unknown paths pass, and are never asked of the backend', async () => {
    const nowhere = await answersOf(off, '/nowhere');
    on().backend.forget();
    for (const path of CLOSED) assert.deepEqual(await answersOf(on, path), nowhere, path);
    assert.deepEqual(on().backend.requests, []);
    await assertPasses(on, 'GET', '/nowhere');
    await assertPasses(on, 'GET', '/api/nowhere', { headers: TOKENS[1] ?? {} });
  });
});

describe('the lists of origins and of hosts', () => {
  const LISTED = 'https://console.example';
  const world = sharedRoutes(overlaid(ON, { server: { allowedOrigins: [LISTED], allowedHosts: ['shop.example'] } }));
  const PREFLIGHT = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-own' };
  const theirs = { host: 'other.example', origin: 'https://other.example' };

  it('are not for what passes: the backend judges origin, host and preflight', async () => {
    for (const [method, more] of [
      ['GET', {}],
      ['POST', {}],
      ['OPTIONS', PREFLIGHT],
    ] as const)
      for (const origin of ['https://other.example', 'null', LISTED]) {
        const headers = { ...theirs, ...more, origin };
        const answer = await assertPasses(world, method, '/nowhere', { headers });
        assert.doesNotMatch(Object.keys(answer.headers).join(), /access-control|vary/);
        assert.partialDeepStrictEqual(world().backend.requests[0]?.headers, headers);
      }
  });

  it('hold for routes of the gateway, and for addresses', async () => {
    for (const path of ['/api/resources', '/reports/Berlin', '/cities'])
      for (const [headers, status] of [
        [theirs, 403],
        [{ ...theirs, host: 'shop.example' }, 403],
        [{ ...theirs, origin: LISTED }, 403],
        [{ host: 'shop.example', origin: LISTED }, path === '/reports/Berlin' ? 402 : 200],
      ] as const) {
        const answer = await send(world().agents, 'GET', path, { headers });
        assert.equal(answer.status, status, `${path} ${JSON.stringify(headers)}`);
        if (status === 403) envelope('FORBIDDEN')(answer);
      }
  });
});
