import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import request from 'supertest';
import { openRoutes, operationsOf, ownPaths } from '../../src/app/open-routes.ts';
import { noRoute, plainExpress } from '../../src/app/plain-express.ts';
import { operatorRoutes } from '../../src/operator/api/routes.ts';
import { takeRoute } from '../../src/passthrough/route.ts';
import { errorHandler } from '../../src/pipeline/middleware/error-handler.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { identify, idPrefixes } from '../../src/server/http/access-record.ts';
import { belowPath } from '../../src/server/http/request.ts';
import { type Changes, load } from '../config/document/document.ts';
import { selling } from '../config/sections/acp.ts';
import { asking, pem } from '../config/sections/ap2.ts';

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
