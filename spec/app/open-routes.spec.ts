import assert from 'node:assert/strict';
import querystring from 'node:querystring';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import request from 'supertest';
import {
  callersPath,
  openAppProbes,
  openRoutes,
  operationsOf,
  ownPathFinder,
  ownPaths,
  samplePath,
  shadowedPaths,
  soldTargets,
} from '../../src/app/open-routes.ts';
import { noRoute, plainExpress } from '../../src/app/plain-express.ts';
import { operatorRoutes } from '../../src/operator/api/routes.ts';
import { takeRoute } from '../../src/passthrough/route.ts';
import { errorHandler } from '../../src/pipeline/middleware/error-handler.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { pathShape } from '../../src/resources/url-template.ts';
import { identify, idPrefixes } from '../../src/server/http/access-record.ts';
import { belowPath } from '../../src/server/http/request.ts';
import { type Changes, load } from '../config/document/document.ts';
import { selling } from '../config/sections/acp.ts';
import { asking, pem } from '../config/sections/ap2.ts';
import { send, sharedRoutes } from '../routes/world.ts';
import { message, tool } from '../telemetry/callers.ts';
import { passing, resource } from './routes.ts';

const R = 'resources.report';
const PASSTHROUGH: Changes = { 'backend.passthrough': { enabled: true } };
const IN_PLACE: Changes = { [`${R}.expose`]: ['http', 'origin'] };

function routesOf(changes: Changes) {
  const config = load(changes);
  return openRoutes(config, compileCatalogue(config));
}

/** The kind of route of each line; a refusal with its status. */
function kinds(changes: Changes, ...lines: readonly string[]): readonly string[] {
  const routeOf = routesOf(changes);
  assert.ok(routeOf);
  return lines.map((line) => {
    const [method, url] = line.split(' ');
    const route = routeOf({ method, url });
    return route.kind === 'refused' ? `refused ${route.error.status}` : route.kind;
  });
}

describe('the decision whose a request is', () => {
  it('is not made where nothing passes and nothing is sold in place', () => {
    assert.equal(routesOf({}), undefined);
    assert.equal(routesOf({ 'backend.passthrough': { enabled: false, include: ['/shop'] } }), undefined);
  });
  it('is made once for a request, and anew for the next one of the same line', () => {
    const routeOf = routesOf(IN_PLACE);
    assert.ok(routeOf);
    const line = () => ({ method: 'GET', url: '/reports/x' });
    const req = line();
    assert.equal(routeOf(req), routeOf(req));
    assert.notEqual(routeOf(req), routeOf(line()));
  });
  it('is made where something passes, or is sold in place', () => {
    assert.deepEqual(kinds(PASSTHROUGH, 'GET /', 'GET /reports/x'), ['pass', 'refused 404']);
    assert.deepEqual(kinds(IN_PLACE, 'GET /', 'GET /reports/x'), ['own', 'in_place']);
    assert.deepEqual(kinds({ ...PASSTHROUGH, ...IN_PLACE }, 'GET /', 'GET /reports/x'), ['pass', 'in_place']);
  });
  it('puts the path of the base URL before every path', () => {
    const changes = { ...PASSTHROUGH, ...IN_PLACE, 'backend.baseUrl': 'http://127.0.0.1:3000/base/' };
    assert.deepEqual(kinds(changes, 'GET /reports/x', 'GET /base/other/x'), ['in_place', 'pass']);
  });
});

describe('the paths of the gateway', () => {
  const WITHOUT_ADAPTERS = [
    ...['/.well-known/agent-commerce', '/api/events', '/api/receipts', '/api/resources', '/console'],
    ...['/health', '/ready'],
  ];
  const paths = (changes: Changes): readonly string[] => {
    const { exact, below } = ownPaths(load({ publish: [], ...changes }));
    return [...exact, ...below].toSorted();
  };
  const added = (changes: Changes) => paths(changes).filter((path) => !WITHOUT_ADAPTERS.includes(path));

  it('are those of the interface specification and the console, whatever is enabled', () =>
    assert.deepEqual(paths({}), WITHOUT_ADAPTERS));
  it('are those of MCP where it is enabled, at its mount', () => {
    assert.deepEqual(added({ 'protocols.mcp': { enabled: true, mountPath: '/tools' } }), ['/tools']);
    assert.deepEqual(added({ 'protocols.mcp': { enabled: false, mountPath: '/tools' } }), []);
  });
  it('are those of A2A and its card where it is enabled', () =>
    assert.deepEqual(added({ 'protocols.a2a.enabled': true }), ['/.well-known/agent-card.json', '/a2a']));
  it('are those of ACP and its discovery where it is enabled', () =>
    assert.deepEqual(added(selling()), ['/.well-known/acp.json', '/acp']));
  it('are the key set where something is signed', () => assert.deepEqual(added(asking()), ['/.well-known/jwks.json']));
  it('are the key set, the DID document and the purchases where receipts are signed', () =>
    assert.deepEqual(added({ ...PASSTHROUGH, signing: { key: pem() } }), [
      '/.well-known/did.json',
      '/.well-known/jwks.json',
      '/api/purchases',
    ]));
  it('are the documents that are published', () => {
    assert.deepEqual(added({ publish: ['llms'] }), ['/llms.txt']);
    assert.deepEqual(added({ publish: undefined }), ['/', '/.well-known/x402', '/llms.txt', '/openapi.json']);
    assert.deepEqual(added({ ...PASSTHROUGH, publish: undefined }), []);
  });
  it('are nothing else below /api or /.well-known: that passes', () =>
    assert.deepEqual(kinds(PASSTHROUGH, 'GET /api/shop', 'GET /.well-known/security.txt', 'GET /mcp'), [
      ...['pass', 'pass', 'pass'],
    ]));
});

describe('what never passes', () => {
  const guarded = (changes: Changes): readonly string[] => {
    const config = load(changes);
    return operationsOf(config, compileCatalogue(config))
      .filter((operation) => operation.guarded)
      .map(({ method, template }) => `${method} ${template}`);
  };
  const CHECKOUT = [
    'POST /checkout_sessions',
    'POST /checkout_sessions/{checkout_session_id}',
    'GET /checkout_sessions/{checkout_session_id}',
    'POST /checkout_sessions/{checkout_session_id}/complete',
    'POST /checkout_sessions/{checkout_session_id}/cancel',
  ];
  const free: Changes = { [`${R}.pricing`]: { type: 'free' }, [`${R}.payments`]: [] };

  it('is what has a price, whatever its channels', () => {
    assert.deepEqual(guarded({}), ['GET /reports/{city}']);
    const mcp = { 'protocols.mcp.enabled': true, [`${R}.expose`]: ['mcp'] };
    assert.deepEqual(guarded(mcp), ['GET /reports/{city}']);
    assert.deepEqual(guarded(free), []);
  });
  it('is what needs a mandate, also where it costs nothing', () =>
    assert.deepEqual(guarded(asking(free)), ['GET /reports/{city}']));
  it('is every step of a checkout at the same server', () => {
    assert.deepEqual(guarded(selling()), ['GET /reports/{city}', ...CHECKOUT]);
    assert.deepEqual(kinds(selling(PASSTHROUGH), 'GET /checkout_sessions/1', 'DELETE /checkout_sessions'), [
      ...['refused 404', 'refused 404'],
    ]);
  });
  it('is every step of a checkout also where loopback has another name there', () => {
    for (const baseUrl of ['http://localhost:3000', 'http://[::1]:3000', 'http://127.0.0.2:3000'])
      assert.deepEqual(guarded(selling({ 'protocols.acp.backend': { baseUrl } })).slice(1), CHECKOUT, baseUrl);
  });
  it('is no step of a checkout of another server', () =>
    assert.deepEqual(guarded(selling({ 'protocols.acp.backend.baseUrl': 'http://127.0.0.1:4000' })), [
      'GET /reports/{city}',
    ]));
});

/** The routes of operators without a token, before a backend that answers everything. */
function closedGateway(changes: Changes) {
  const config = load(changes);
  const app = plainExpress();
  app.use(identify(idPrefixes(config.protocols)));
  const routeOf = openRoutes(config, compileCatalogue(config));
  if (routeOf !== undefined) app.use(takeRoute(routeOf, (_req, res) => void res.send('the backend')));
  const stream = () => assert.fail('a closed route reads nothing');
  const unread = { stream } as unknown as Parameters<typeof operatorRoutes>[1];
  app.use(belowPath(['/api/receipts', '/api/events'], operatorRoutes(config.server.adminTokens, unread)));
  app.use(noRoute);
  app.use(errorHandler(() => undefined));
  return request(app);
}

describe('operator routes without a token', () => {
  const closed = ['/api/receipts', '/api/events', '/api/events/stream', '/api/receipts/1'];
  const answers = async (changes: Changes, paths: readonly string[]) => {
    const gateway = closedGateway(changes);
    return Promise.all(
      paths.map(async (path) => {
        const { status, text } = await gateway.get(path).set('x-request-id', 'same').set('authorization', 'Bearer x');
        return [status, text];
      }),
    );
  };

  it('look like no route where nothing passes', async () => {
    const [none, ...routes] = await answers({}, ['/api/nowhere', ...closed]);
    assert.equal(none?.[0], 404);
    for (const route of routes) assert.deepEqual(route, none);
  });
  it('are never asked of the backend: they stay 404 of the gateway where everything else passes', async () => {
    const [none] = await answers({}, ['/api/nowhere']);
    const [passed, ...routes] = await answers(PASSTHROUGH, ['/api/nowhere', ...closed]);
    assert.deepEqual(passed, [200, 'the backend']);
    for (const route of routes) assert.deepEqual(route, none);
  });
});

describe('the path that callers have', () => {
  for (const [template, prefix, path] of [
    ['/reports/{city}?format=json', '', '/reports/{city}'],
    ['/v1/reports', '/v1', '/reports'],
    ['/v1/', '/v1', '/'],
    ['/v10/reports', '/v1', undefined],
    ['/v1', '/v1', undefined],
  ] as const)
    it(`of ${template} behind ${prefix || 'no path'} is ${path ?? 'none'}`, () =>
      assert.equal(callersPath(template, prefix), path));
});

it('paths have one shape when their letters and parameters differ in name alone', () => {
  assert.equal(pathShape('/Reports/{city}.csv'), pathShape('/reports/{town}.csv'));
  assert.notEqual(pathShape('/reports/{city}'), pathShape('/reports/city'));
  assert.equal(samplePath('/a/{b}-{c}/d'), '/a/x-x/d');
});

describe('the path of the gateway at which a path lies', () => {
  const config = load({ 'protocols.mcp.enabled': true });
  for (const [path, own] of [
    ['/health', '/health'],
    ['/health/', undefined],
    ['/health/deep', undefined],
    ['/{page}', '/health'],
    ['/he{rest}', '/health'],
    ['/hea{rest}lthy', undefined],
    ['/{a}/{b}', '/.well-known/agent-commerce'],
    ['/api/{b}', '/api/resources'],
    ['/{a}/agent-commerce', '/.well-known/agent-commerce'],
    ['/mcp', '/mcp'],
    ['/mcp/x/y', '/mcp'],
    ['/mcps', undefined],
    ['/MCP', undefined],
    ['/api', undefined],
    ['/api/shop', undefined],
    ['/', '/'],
    ['/shop', undefined],
  ] as const)
    it(`${path} is ${own ?? 'none'}`, () => assert.equal(ownPathFinder(config)(path), own));
});

it('what is shadowed are paths of resources and of include, behind the base URL', () => {
  const config = load({
    'backend.baseUrl': 'http://127.0.0.1:3000/v1',
    ...passing({ include: ['/shop', '/console/x'] }),
    ...resource('b', 'GET', '/ready'),
    ...resource('orders', 'GET', '/{kind}/resources/{id}'),
  });
  assert.deepEqual(shadowedPaths(config), [
    { setting: 'resources.b.backend.path', path: '/ready', by: '/ready', partly: false },
    { setting: 'resources.orders.backend.path', path: '/{kind}/resources/{id}', by: '/api/resources', partly: true },
    { setting: 'backend.passthrough.include[1]', path: '/console/x', by: '/console', partly: false },
  ]);
});

const DEAR = { type: 'fixed', amount: '5', currency: 'TUSD' };
const FREE = { type: 'free' };
const sold = (path: string, pricing: object, schema: object = {}) => ({
  name: path,
  expose: ['http', 'mcp', 'a2a', 'origin'],
  inputSchema: path.includes('{')
    ? { type: 'object', properties: { box: { type: 'string', ...schema } }, required: ['box'] }
    : { type: 'object' },
  backend: { method: 'GET', path },
  pricing,
});

/** The dear operation that a server runs which decodes paths and knows formats; else undefined. */
function dearOf(target: string): string | undefined {
  const { pathname, searchParams } = new URL(target, 'http://x');
  // Takes bytes that are no UTF-8 as well, as lenient servers do.
  const path = querystring
    .unescape(querystring.unescape(pathname))
    .toLowerCase()
    .replace(/[;?#].*$/, '')
    .replaceAll('\\', '/')
    .replace(/\.\w+$/, '')
    .replace(/\/$/, '');
  if (/^\/mail\/[^/]+\/full$/.test(path)) return 'full';
  return path === '/find' && searchParams.get('mode')?.toLowerCase() === 'deep' ? 'deep' : undefined;
}

describe('a call whose input names another operation', () => {
  const world = sharedRoutes({
    resources: {
      preview: sold('/mail/{box}', FREE),
      preview_any: { ...sold('/mail/{box}', FREE, { pattern: '.' }), expose: ['http', 'mcp', 'a2a'] },
      full: sold('/mail/{box}/full', DEAR),
      search: {
        ...sold('/find', FREE),
        inputSchema: { type: 'object', properties: { mode: { type: 'string' } } },
        expose: ['http', 'mcp', 'a2a'],
      },
      deep: { ...sold('/find?mode=deep', DEAR), expose: ['http', 'mcp', 'a2a'] },
    },
  });
  const post = async (path: string, body: string): Promise<string> =>
    (
      await send(world().agents, 'POST', path, {
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
        body,
      })
    ).text;
  const CHANNELS: Readonly<Record<string, (id: string, input: object) => Promise<string>>> = {
    http: (id, input) => post(`/api/resources/${id}/invoke`, JSON.stringify(input)),
    mcp: (id, input) => post('/mcp', tool(id, input)),
    a2a: (id, input) => post('/a2a', message(id, input)),
    origin: async (_id, input) => {
      const [value = ''] = Object.values(input);
      return (await send(world().agents, 'GET', `/mail/${encodeURIComponent(value)}`)).text;
    },
  };
  const asked = (): readonly string[] => world().backend.requests.map(({ url = '' }) => url);

  for (const [channel, call] of Object.entries(CHANNELS))
    it(`never runs it over ${channel}, whatever the value`, async () => {
      world().backend.forget();
      const piece = fc.constantFrom(
        'a',
        'full',
        'FULL',
        '/',
        '\\',
        '%2F',
        '%',
        ';',
        '?',
        '#',
        '.',
        '.json',
        ' ',
        'é',
        '／',
      );
      const ids = channel === 'origin' ? ['preview'] : ['preview', 'preview_any'];
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...ids),
          fc.array(piece, { minLength: 1, maxLength: 4 }),
          async (id, pieces) => {
            await call(id, { box: pieces.join('') });
          },
        ),
        { numRuns: 60 },
      );
      assert.ok(asked().length > 5);
      assert.deepEqual(
        asked()
          .map(dearOf)
          .filter((dear) => dear !== undefined),
        [],
      );
    });

  it('is refused in words before a price is named, where a fixed query alone tells the two apart as well', async () => {
    world().backend.forget();
    for (const [id, input, message] of [
      ['preview', { box: 'a/full' }, /must have none of/],
      ['preview_any', { box: 'a/full' }, /path of another operation/],
      ['preview_any', { box: 'a/full.json' }, /path of another operation/],
      ['search', { mode: 'deep' }, /path of another operation/],
      ['search', { mode: 'DEEP' }, /path of another operation/],
    ] as const) {
      const text = await CHANNELS['http']?.(id, input);
      assert.match(text ?? '', /"code":"INPUT_INVALID"/);
      assert.match(text ?? '', message);
    }
    assert.deepEqual(asked(), []);
  });

  it('passes with every other value', async () => {
    world().backend.forget();
    await CHANNELS['http']?.('preview', { box: 'full' });
    await CHANNELS['http']?.('preview_any', { box: 'a/b' });
    await CHANNELS['http']?.('search', { mode: 'quick' });
    assert.deepEqual(asked(), ['/mail/full', '/mail/a%2Fb', '/find?mode=quick']);
  });
});

const NAME = 'GATEWAY_APP_PROBE_READINESS';

/** Opens with a readiness probe of this URL. The base configuration sells GET /reports/{city}. */
const opened = (url: string, changes: Changes = {}) => openAppProbes({ [NAME]: url }, load(changes));

describe('the guard of sold paths before the probes of the merchant', () => {
  it('lets pass what is not sold, and what is free', () => {
    const free = resource('cities', 'GET', '/cities');
    for (const path of ['/', '/healthz', '/reports', '/reports/a/b', '/cities'])
      assert.equal(opened(`http://127.0.0.1:3000${path}`, free).readiness?.target, path);
  });

  for (const path of [
    '/reports/Berlin',
    '/REPORTS/x?y',
    '/reports/%42erlin',
    '/./reports/Berlin',
    '/reports//x',
    '/a/..;/reports/x',
  ])
    it(`refuses ${path}, with the name of the variable and what to do`, () =>
      assert.throws(
        () => opened(`http://127.0.0.1:3000${path}`),
        /GATEWAY_APP_PROBE_READINESS: is the path of something that is sold/,
      ));

  it('refuses it on a second port of the merchant, and whatever passes', () => {
    for (const changes of [{}, passing(), { 'resources.report.expose': ['http', 'origin'] }])
      for (const url of ['http://127.0.0.1:9090/reports/Berlin', 'https://127.0.0.1:8443/reports/Berlin'])
        assert.throws(() => opened(url, changes), /is the path of something that is sold/);
  });

  it('refuses the ports of the gateway, which would ask itself for ever', () => {
    for (const port of [8402, 8403])
      assert.throws(() => opened(`http://127.0.0.1:${port}/app-probe/readiness`), /names a port of the gateway/);
  });

  it('refuses what cannot be read, before the path is judged', () => {
    assert.throws(() => opened('http://10.0.0.1:3000/reports/Berlin'), /must name 127\.0\.0\.1/);
  });

  it('holds nothing where nothing is sold', () => {
    const free = { 'resources.report.pricing': { type: 'free' }, payments: undefined };
    assert.equal(soldTargets(load(free))('/reports/Berlin'), false);
  });
});
