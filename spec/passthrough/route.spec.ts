import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import express, { type ErrorRequestHandler } from 'express';
import request from 'supertest';
import { GatewayError } from '../../src/errors.ts';
import {
  type AddressedOperation,
  compileRoutes,
  type InPlaceRoute,
  inPlaceOf,
  onlyInPlace,
  type RequestLine,
  type Route,
  takeRoute,
} from '../../src/passthrough/route.ts';
import { reverseTemplate } from '../../src/resources/reverse-template.ts';

type Parts = Parameters<typeof compileRoutes>[0];

/** An operation of the backend; `sold` says where, `free` that it may pass. */
function operation(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  template: string,
  { id, free = false }: { readonly id?: string; readonly free?: boolean } = {},
): AddressedOperation {
  const properties = Object.fromEntries(
    [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, { type: 'string' }]),
  );
  const reversal = reverseTemplate({
    backend: {
      ...{
        method,
        path: template,
        headers: {},
        inputBindings: undefined,
        contentType: 'application/json',
        timeoutMs: 1,
        maxResponseBytes: 1,
      },
      ...{ idempotent: false, relayStatuses: { sold: [], unpaid: [] }, strictQuery: false },
    },
    inputSchema: { type: 'object', properties },
  });
  assert.ok(reversal.ok);
  return {
    method,
    template,
    guarded: !free,
    inPlace: id === undefined ? undefined : { resourceId: id, address: reversal.address },
  };
}

const PARTS: Parts = {
  own: { exact: new Set(['/health', '/ready']), below: ['/api/resources', '/mcp'] },
  operations: [
    operation('GET', '/reports/{city}', { id: 'report' }),
    operation('POST', '/orders', { id: 'order' }),
    operation('GET', '/orders', { id: 'orders', free: true }),
    operation('GET', '/news', { id: 'news', free: true }),
    operation('GET', '/quotes/{id}'),
    operation('PUT', '/quotes/{id}', { free: true }),
    operation('GET', '/cities', { free: true }),
  ],
  pathPrefix: '',
  passthrough: { include: undefined, exclude: ['/admin'], allow: [] },
};

/** What becomes of a request line, in words. */
function outcome(parts: Partial<Parts>, line: string | RequestLine): string {
  const [method = '', url = ''] = typeof line === 'string' ? line.split(' ') : [];
  return words(compileRoutes({ ...PARTS, ...parts })(typeof line === 'string' ? { method, url } : line));
}

function words(route: Route): string {
  if (route.kind === 'in_place') return `${route.inPlace.asks} ${route.inPlace.resourceId}`;
  if (route.kind !== 'refused') return route.kind;
  const { status, headers, details } = route.error;
  return [status, details?.reason ?? headers['allow']].filter((part) => part !== undefined).join(' ');
}

function rows(title: string, parts: Partial<Parts>, expected: readonly (readonly [string, string])[]): void {
  describe(title, () => {
    for (const [line, words] of expected) it(`${line}: ${words}`, () => assert.equal(outcome(parts, line), words));
  });
}

rows("the gateway's own paths", {}, [
  ['GET /health', 'own'],
  ['DELETE /health', 'own'],
  ['GET /health?x=1', 'own'],
  ['GET /health/', 'pass'],
  ['GET /healthy', 'pass'],
  ['GET /Health', 'pass'],
  ['POST /api/resources/report/invoke', 'own'],
  ['GET /api/resources/nothing/like/it', 'own'],
  ['TRACE /api/resources', 'own'],
  ['GET /api/resourceful', 'pass'],
  ['GET /api', 'pass'],
  ['POST /mcp', 'own'],
  ['GET http://evil.example/health', 'own'],
  ['OPTIONS *', 'own'],
]);

it('an own path wins over what is sold at the same address', () => {
  const operations = [operation('GET', '/mcp/{tool}', { id: 'tool' })];
  assert.equal(outcome({ operations }, 'GET /mcp/x'), 'own');
  assert.equal(outcome({ operations, own: { exact: new Set(), below: [] } }, 'GET /mcp/x'), 'call tool');
});

rows('what is sold at its own address', {}, [
  ['GET /reports/Berlin', 'call report'],
  ['GET /reports/Berlin?x=1', 'call report'],
  ['GET /reports/Z%C3%BCrich', 'call report'],
  ['HEAD /reports/Berlin', 'head report'],
  ['OPTIONS /reports/Berlin', 'options report'],
  ['POST /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['DELETE /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['TRACE /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['PURGE /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['QUERY /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['POST /orders', 'call order'],
  ['PATCH /orders', '405 POST, GET, HEAD, OPTIONS'],
]);

rows('free and priced methods of one address', {}, [
  ['GET /orders', 'call orders'],
  ['HEAD /orders', 'head orders'],
  ['DELETE /orders', '405 POST, GET, HEAD, OPTIONS'],
  ['GET /news', 'call news'],
  ['HEAD /news', 'head news'],
  ['OPTIONS /news', 'options news'],
  ['POST /news', 'pass'],
  ['TRACE /news', '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
]);

describe('what is sold with a fixed query', () => {
  for (const free of [true, false])
    it(`has its path for an address, ${free ? 'free' : 'priced'}`, () => {
      const operations = [operation('GET', '/reports/{city}?format=json', { id: 'report', free })];
      for (const passthrough of [PARTS.passthrough, undefined]) {
        assert.equal(outcome({ operations, passthrough }, 'GET /reports/Berlin?format=json'), 'call report');
        assert.equal(outcome({ operations, passthrough }, 'GET /reports/Berlin'), 'call report');
      }
    });
});

it('an OPTIONS is asked of the operation that has the address to itself', () => {
  const operations = [
    operation('GET', '/reports/{city}', { id: 'report' }),
    operation('POST', '/reports/all', { id: 'all' }),
  ];
  for (const listed of [operations, operations.toReversed()])
    assert.equal(outcome({ operations: listed }, 'OPTIONS /reports/all'), 'options all');
});

it('a HEAD is no HEAD of an operation that is no GET', () => {
  const operations = [operation('POST', '/orders', { id: 'order' })];
  assert.equal(outcome({ operations }, 'HEAD /orders'), '405 POST, OPTIONS');
});

rows('other spellings of what is sold at its own address', {}, [
  ['GET /Reports/Berlin', '400 path_spelling'],
  ['GET /reports/Berlin/', '400 path_spelling'],
  ['POST /%72eports/Berlin', '400 path_spelling'],
  ['GET /orders/', '400 path_spelling'],
  ['GET //reports/Berlin', '400 ambiguous_path'],
  ['GET /x/../reports/Berlin', '400 ambiguous_path'],
  ['HEAD /reports/Berlin;v=1', '400 ambiguous_path'],
  ['OPTIONS /reports/a%2fb', '400 ambiguous_path'],
  ['GET /reports/..', '400 ambiguous_path'],
  ['GET /reports\\Berlin', '400 request_target'],
  ['GET /reports/Berlin#x', '400 request_target'],
  ['GET http://evil.example/reports/Berlin', '400 request_target'],
  ['GET ftp://evil.example/reports/Berlin', '400 request_target'],
]);

rows('what is sold on other channels only', {}, [
  ['GET /quotes/7', '404'],
  ['HEAD /quotes/7', '404'],
  ['OPTIONS /quotes/7', '404'],
  ['PUT /quotes/7', '404'],
  ['GET /Quotes/7/', '404'],
  ['GET /quotes//7', '400 ambiguous_path'],
]);

rows('what is not sold', {}, [
  ['GET /', 'pass'],
  ['POST /checkout', 'pass'],
  ['PROPFIND /files', 'pass'],
  ['OPTIONS /checkout', 'pass'],
  ['GET /cities', 'pass'],
  ['GET /reports', 'pass'],
  ['GET /a//b/../c;x=%2f', 'pass'],
  ['GET /search?q=reports', 'pass'],
  ['TRACE /', '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  ['CONNECT /', '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  ['GET http://evil.example/', '400 request_target'],
]);

rows('other names of what is sold or excluded', {}, [
  ['GET /reports/Berlin/today', '400 ambiguous_path'],
  ['GET /reports/Berlin.json/x', '400 ambiguous_path'],
  ['GET /en/reports/Berlin', '400 ambiguous_path'],
  ['GET /EN/Reports/Berlin', '400 ambiguous_path'],
  ['GET /index.php/reports/Berlin', '400 ambiguous_path'],
  ['GET /_next/data/h4sh/reports/Berlin.json', '400 ambiguous_path'],
  ['GET /_next/data/h4sh/en/orders.json', '400 ambiguous_path'],
  ['GET /page-data/orders/page-data.json', '400 ambiguous_path'],
  ['GET /orders/7', '400 ambiguous_path'],
  ['GET /orders/__data.json', '400 ambiguous_path'],
  ['GET /orders/_payload.json', '400 ambiguous_path'],
  ['GET /orders.json', '400 ambiguous_path'],
  ['GET /orders.data', '400 ambiguous_path'],
  ['GET /ordersX', '400 ambiguous_path'],
  ['GET /orders-all', '400 ambiguous_path'],
  ["GET /orders('7')", '400 ambiguous_path'],
  ['GET /v1/quotes/7', '400 ambiguous_path'],
  ['GET /image?url=%2Freports%2FBerlin&w=640', '400 ambiguous_path'],
  ['GET /image?url=%252Freports%252FBerlin', '400 ambiguous_path'],
  ['GET /image?url=http://127.0.0.1:3000/orders', '400 ambiguous_path'],
  ['GET /?rest_route=/orders', '400 ambiguous_path'],
  ['GET /?path=orders', '400 ambiguous_path'],
  ['GET /index.php?/orders/7', '400 ambiguous_path'],
  ['GET /?batch=[%22reports/Berlin%22]', '400 ambiguous_path'],
  ['GET /?batch=[%22/x%22,%22reports/Berlin%22]', '400 ambiguous_path'],
  ['GET /en/admin/users', '400 ambiguous_path'],
  ['GET /?page=admin', '400 ambiguous_path'],
  ['GET /reports', 'pass'],
  ['GET /en/reports', 'pass'],
  ['GET /en/reports/', 'pass'],
  ['GET /reports.json', 'pass'],
  ['GET /report/Berlin', 'pass'],
  ['GET /my-reports/Berlin', 'pass'],
  ['GET /reports-2024/Berlin', 'pass'],
  ['GET /backorders', 'pass'],
  ['GET /?q=orders', 'pass'],
  ['GET /?sort=orders&tab=quotes', 'pass'],
  ['GET /?q=either/or', 'pass'],
]);

rows(
  'other names that the configuration allows',
  {
    passthrough: {
      include: ['/shop', '/orders/help', '/_next'],
      exclude: ['/shop/staff'],
      allow: ['/_next/static', '/shop/go', '/orders-faq'],
    },
  },
  [
    ['GET /orders/help/me', 'pass'],
    ['GET /orders/7', '404'],
    ['GET /_next/static/chunks/pages/reports/%5Bcity%5D-1f.js', 'pass'],
    ['GET /_next/data/h4sh/orders.json', '400 ambiguous_path'],
    ['GET /shop/go?to=/reports/Berlin', 'pass'],
    ['GET /shop/login?next=/reports/Berlin', '400 ambiguous_path'],
    ['GET /shop/en/staff', '400 ambiguous_path'],
    ['GET /shop/go/orders', 'pass'],
    ['GET /orders-faq', '404'],
    ['GET /shop/go/../orders', '400 ambiguous_path'],
  ],
);

it('an allowed path opens no path that is sold or excluded itself', () => {
  const passthrough = { include: undefined, exclude: ['/admin'], allow: ['/quotes', '/admin', '/orders'] };
  assert.deepEqual(
    ['GET /quotes/7', 'GET /admin/x', 'GET /orders', 'GET /Orders', 'GET /quotes/..;/7', 'GET /orders/7'].map((line) =>
      outcome({ passthrough }, line),
    ),
    ['404', '404', 'call orders', '400 path_spelling', '400 ambiguous_path', 'pass'],
  );
});

rows(
  'names of templates with a literal part, without one, and of the root',
  {
    operations: [
      operation('GET', '/reports/{city}.csv', { id: 'report' }),
      operation('GET', '/{page}', { id: 'page' }),
      operation('GET', '/', { id: 'root' }),
    ],
  },
  [
    ['GET /reports/Berlin', 'pass'],
    ['GET /en/reports/Berlin.csv', '400 ambiguous_path'],
    ['GET /reports/Berlin.csv/x', '400 ambiguous_path'],
    ['GET /en/reports/Berlin.html', 'pass'],
    ['GET /a/b', 'pass'],
    ['GET /_next/data/h4sh/index.json', '400 ambiguous_path'],
  ],
);

rows('what is excluded', {}, [
  ['GET /admin', '404'],
  ['GET /admin/users?x=1', '404'],
  ['GET /ADMIN/', '404'],
  ['GET /%61dmin', '404'],
  ['GET //admin', '404'],
  ['GET /x/..;/admin/users', '404'],
  ['TRACE /admin', '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  ['GET /administrators', 'pass'],
  ['GET /wp-admin', 'pass'],
]);

rows(
  'where only some paths are included',
  { passthrough: { include: ['/shop', '/img/{size}', '/orders'], exclude: ['/shop/staff'], allow: [] } },
  [
    ['GET /shop', 'pass'],
    ['POST /shop/cart?x=1', 'pass'],
    ['GET /shop/', 'pass'],
    ['GET /shop/a//b;x', 'pass'],
    ['GET /img/small/1.png', 'pass'],
    ['GET /img', '404'],
    ['GET /img/', '404'],
    ['GET /Shop', '404'],
    ['GET /shopping', '404'],
    ['GET /', '404'],
    ['GET /cities', '404'],
    ['GET /shop/staff/rota', '404'],
    ['GET /shop/../internal', '400 ambiguous_path'],
    ['GET /shop/%2e%2e/internal', '400 ambiguous_path'],
    ['GET /shop/..;x/internal', '400 ambiguous_path'],
    ['GET /shop/..%2finternal', '400 ambiguous_path'],
    ['GET /shop/..%5cinternal', '400 ambiguous_path'],
    ['GET /orders', 'call orders'],
    ['DELETE /orders', '405 POST, GET, HEAD, OPTIONS'],
    ['GET /reports/Berlin', 'call report'],
  ],
);

describe('behind the path of a base URL', () => {
  const parts: Partial<Parts> = {
    pathPrefix: '/shop/v1',
    operations: [operation('GET', '/shop/v1/reports/{city}', { id: 'report' })],
  };
  for (const [line, expected] of [
    ['GET /reports/Berlin', 'call report'],
    ['GET /shop/v1/reports/Berlin', '400 ambiguous_path'],
    ['GET /en/reports/Berlin', '400 ambiguous_path'],
    ['GET /image?url=/reports/Berlin', '400 ambiguous_path'],
    ['GET /reports', 'pass'],
    ['GET /x', 'pass'],
    ['GET /admin', '404'],
    ['GET /../v1/admin', '400 ambiguous_path'],
    ['GET /../../internal', '400 ambiguous_path'],
    ['GET /%2e%2e%2finternal', '400 ambiguous_path'],
  ] as const)
    it(`${line}: ${expected}`, () => assert.equal(outcome(parts, line), expected));

  it('included and excluded paths are those behind it', () => {
    const passthrough = { include: ['/shop'], exclude: ['/shop/staff'], allow: [] };
    const lines = ['GET /shop/cart', 'GET /shop/v1/cart', 'GET /shop/staff', 'GET /cart'];
    assert.deepEqual(
      lines.map((line) => outcome({ ...parts, passthrough }, line)),
      ['pass', 'pass', '404', '404'],
    );
    const deeper = { include: ['/shop/v1'], exclude: [], allow: [] };
    assert.equal(outcome({ ...parts, passthrough: deeper }, 'GET /cart'), '404');
  });

  it('the backend is asked with it, and the caller is shown the path without it', () => {
    const route = compileRoutes({ ...PARTS, ...parts })({ method: 'GET', url: '/reports/Berlin?a=1&b' });
    assert.deepEqual(route, {
      kind: 'in_place',
      inPlace: {
        resourceId: 'report',
        asks: 'call',
        path: '/shop/v1/reports/Berlin',
        query: 'a=1&b',
        publicPath: '/reports/Berlin',
        allow: 'GET, HEAD, OPTIONS',
      },
    });
  });
});

rows('with nothing that passes', { passthrough: undefined }, [
  ['GET /reports/Berlin', 'call report'],
  ['HEAD /reports/Berlin', 'head report'],
  ['OPTIONS /orders', 'options order'],
  ['POST /reports/Berlin', '405 GET, HEAD, OPTIONS'],
  ['POST /news', '405 GET, HEAD, OPTIONS'],
  ['GET /Reports/Berlin', 'own'],
  ['GET //reports/Berlin', 'own'],
  ['GET /quotes/7', 'own'],
  ['GET /cities', 'own'],
  ['GET /admin', 'own'],
  ['TRACE /', 'own'],
  ['GET http://evil.example/reports/Berlin', 'own'],
  ['GET http://evil.example/', 'own'],
]);

it('a target in absolute form is refused also where its path was taken out of it already', () => {
  const url = '/reports/Berlin';
  assert.equal(outcome({}, { method: 'GET', url, originalUrl: url }), 'call report');
  assert.equal(outcome({}, { method: 'GET', url, originalUrl: `http://a.example${url}` }), '400 request_target');
});

it('an error tells a caller where to find what is sold', () => {
  const routeOf = compileRoutes(PARTS);
  for (const [method, url, message] of [
    ['GET', '/Reports/Berlin', /see address in GET \/api\/resources/],
    ['GET', '/quotes/7', /see GET \/api\/resources/],
    ['GET', '/admin', /unless backend\.passthrough/],
    ['GET', '/en/reports/Berlin', /backend\.passthrough\.allow names it/],
    ['GET', '/image?url=/reports/Berlin', /query .* backend\.passthrough\.allow/],
    ['POST', '/reports/Berlin', /serves GET, HEAD, OPTIONS/],
    ['GET', '//reports/Berlin', /Spell it without/],
  ] as const) {
    const route = routeOf({ method, url });
    assert.match(route.kind === 'refused' ? route.error.message : '', message);
  }
});

describe('a path of two operations of which one is not sold in place', () => {
  const operations = [operation('GET', '/checkouts/{id}'), operation('GET', '/{kind}/{id}', { id: 'any', free: true })];
  const at = (line: string): string => outcome({ operations }, line);

  it('is neither given away nor passed', () => {
    assert.equal(at('GET /checkouts/c1'), '404');
    assert.equal(at('GET /checkout%73/c1'), '404');
  });
  it('leaves the other one its own paths', () => assert.equal(at('GET /news/1'), 'call any'));
});

describe('the start of a sold path', () => {
  const operations = [operation('POST', '/orders/{id}/confirm')];
  const PATHS = ['/orders/%2f42/confirm::$DATA', '/orders/a%252fb/confirm-all', '/orders/a%5Cb/confirmed'];
  for (const path of PATHS)
    it(`is found in ${path}, whatever the server decodes`, () =>
      assert.equal(outcome({ operations }, `GET ${path}`), '400 ambiguous_path'));
  it('is not found behind another one', () =>
    assert.equal(outcome({ operations }, 'GET /carts/%2f42/confirmed'), 'pass'));
});

const IN_PLACE: InPlaceRoute = {
  ...{ resourceId: 'report', asks: 'call', path: '/reports/x', query: '', publicPath: '/reports/x' },
  allow: 'GET, HEAD, OPTIONS',
};

/** Says which handler answered a request that has this route. */
async function answeredBy(route: Route): Promise<string> {
  const app = express();
  app.use(
    takeRoute(
      () => route,
      (_req, res) => void res.send('passthrough'),
    ),
  );
  app.use(onlyInPlace((_req, res) => void res.send(`sale of ${inPlaceOf(res)?.resourceId}`)));
  app.use(
    (_req, res) => void res.send(`own routes, ${inPlaceOf(res) === undefined ? 'no sale noted' : 'a sale noted'}`),
  );
  const failed: ErrorRequestHandler = (error: GatewayError, _req, res, _next) =>
    void res.status(error.status).set(error.headers).send(error.code);
  app.use(failed);
  const answer = await request(app).get('/x');
  return [answer.status, answer.text, answer.headers['allow']].filter((part) => part !== undefined).join(' ');
}

describe('a request', () => {
  const refused = new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET' } });
  for (const [title, route, answer] of [
    ["of the gateway's own goes to its routes, past those of sales", { kind: 'own' }, '200 own routes, no sale noted'],
    ['that passes is answered by the passthrough alone', { kind: 'pass' }, '200 passthrough'],
    ['at an address that sells goes to the sale', { kind: 'in_place', inPlace: IN_PLACE }, '200 sale of report'],
    ['that is refused gets the error of its route', { kind: 'refused', error: refused }, '405 METHOD_NOT_ALLOWED GET'],
  ] as const)
    it(title, async () => assert.equal(await answeredBy(route), answer));
});

it('the decision is made from the request line as it came', async () => {
  const seen: unknown[] = [];
  const app = express();
  app.use((req, res, next) => {
    const route = takeRoute(
      ({ method, url, originalUrl }) => {
        seen.push([method, url, originalUrl]);
        return { kind: 'own' };
      },
      () => assert.fail('nothing passes'),
    );
    route(req, res, next);
  });
  app.use((_req, res) => void res.end());
  await request(app).post('/a//b;c?d=%2f');
  assert.deepEqual(seen, [['POST', '/a//b;c?d=%2f', '/a//b;c?d=%2f']]);
});
