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
      ...{ method, path: template, headers: {}, inputBindings: undefined, contentType: 'application/json' },
      ...{ timeoutMs: 1, maxResponseBytes: 1 },
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

/** What becomes of request lines, by outcome. */
function rows(title: string, expected: Readonly<Record<string, readonly string[]>>, parts: Partial<Parts> = {}): void {
  describe(title, () => {
    for (const [words, lines] of Object.entries(expected))
      for (const line of lines) it(`${line}: ${words}`, () => assert.equal(outcome(parts, line), words));
  });
}

rows("the gateway's own paths", {
  own: [
    ...['GET /health', 'DELETE /health', 'GET /health?x=1', 'POST /api/resources/report/invoke'],
    ...['GET /api/resources/nothing/like/it', 'TRACE /api/resources', 'POST /mcp'],
    ...['GET http://evil.example/health', 'OPTIONS *'],
  ],
  pass: ['GET /health/', 'GET /healthy', 'GET /Health', 'GET /api/resourceful', 'GET /api'],
});

const TOOL = [operation('GET', '/mcp/{tool}', { id: 'tool' })];
rows('an own path wins over what is sold there', { own: ['GET /mcp/x'] }, { operations: TOOL });
rows(
  'which is sold where there is no own path',
  { 'call tool': ['GET /mcp/x'] },
  { operations: TOOL, own: { exact: new Set(), below: [] } },
);

rows('what is sold at its own address', {
  'call report': ['GET /reports/Berlin', 'GET /reports/Berlin?x=1', 'GET /reports/Z%C3%BCrich'],
  'head report': ['HEAD /reports/Berlin'],
  'options report': ['OPTIONS /reports/Berlin'],
  '405 GET, HEAD, OPTIONS': [
    ...['POST /reports/Berlin', 'DELETE /reports/Berlin', 'TRACE /reports/Berlin', 'PURGE /reports/Berlin'],
    'QUERY /reports/Berlin',
  ],
  'call order': ['POST /orders'],
  '405 POST, GET, HEAD, OPTIONS': ['PATCH /orders'],
});

rows('free and priced methods of one address', {
  'call orders': ['GET /orders'],
  'head orders': ['HEAD /orders'],
  '405 POST, GET, HEAD, OPTIONS': ['DELETE /orders'],
  'call news': ['GET /news'],
  'head news': ['HEAD /news'],
  'options news': ['OPTIONS /news'],
  pass: ['POST /news'],
  '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS': ['TRACE /news'],
});

for (const free of [true, false])
  for (const passthrough of [PARTS.passthrough, undefined])
    rows(
      `what is sold with a fixed query has its path for an address, ${free ? 'free' : 'priced'}`,
      { 'call report': ['GET /reports/Berlin?format=json', 'GET /reports/Berlin'] },
      { operations: [operation('GET', '/reports/{city}?format=json', { id: 'report', free })], passthrough },
    );

const ALL = [operation('GET', '/reports/{city}', { id: 'report' }), operation('POST', '/reports/all', { id: 'all' })];
for (const operations of [ALL, ALL.toReversed()])
  rows(
    'an OPTIONS is asked of the operation that has the address to itself',
    {
      'options all': ['OPTIONS /reports/all'],
    },
    { operations },
  );

rows(
  'a HEAD is no HEAD of an operation that is no GET',
  {
    '405 POST, OPTIONS': ['HEAD /orders'],
  },
  { operations: [operation('POST', '/orders', { id: 'order' })] },
);

rows('other spellings of what is sold at its own address', {
  '400 path_spelling': ['GET /Reports/Berlin', 'GET /reports/Berlin/', 'POST /%72eports/Berlin', 'GET /orders/'],
  '400 ambiguous_path': [
    ...['GET //reports/Berlin', 'GET /x/../reports/Berlin', 'HEAD /reports/Berlin;v=1'],
    ...['OPTIONS /reports/a%2fb', 'GET /reports/..'],
  ],
  '400 request_target': [
    ...['GET /reports\\Berlin', 'GET /reports/Berlin#x', 'GET http://evil.example/reports/Berlin'],
    'GET ftp://evil.example/reports/Berlin',
  ],
});

rows('what is sold on other channels only', {
  404: ['GET /quotes/7', 'HEAD /quotes/7', 'OPTIONS /quotes/7', 'PUT /quotes/7', 'GET /Quotes/7/'],
  '400 ambiguous_path': ['GET /quotes//7'],
});

rows('what is not sold', {
  pass: [
    ...['GET /', 'POST /checkout', 'PROPFIND /files', 'OPTIONS /checkout', 'GET /cities', 'GET /reports'],
    ...['GET /a//b/../c;x=%2f', 'GET /search?q=reports'],
  ],
  '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS': ['TRACE /', 'CONNECT /'],
  '400 request_target': ['GET http://evil.example/'],
});

rows('other names of what is sold or excluded', {
  '400 ambiguous_path': [
    ...['GET /reports/Berlin/today', 'GET /reports/Berlin.json/x', 'GET /en/reports/Berlin'],
    ...['GET /EN/Reports/Berlin', 'GET /index.php/reports/Berlin', 'GET /_next/data/h4sh/reports/Berlin.json'],
    ...['GET /_next/data/h4sh/en/orders.json', 'GET /page-data/orders/page-data.json', 'GET /orders/7'],
    ...['GET /orders/__data.json', 'GET /orders/_payload.json', 'GET /orders.json', 'GET /orders.data'],
    ...['GET /ordersX', 'GET /orders-all', "GET /orders('7')", 'GET /v1/quotes/7'],
    ...['GET /image?url=%2Freports%2FBerlin&w=640', 'GET /image?url=%252Freports%252FBerlin'],
    ...['GET /image?url=http://127.0.0.1:3000/orders', 'GET /?rest_route=/orders', 'GET /?path=orders'],
    ...['GET /index.php?/orders/7', 'GET /?batch=[%22reports/Berlin%22]'],
    ...['GET /?batch=[%22/x%22,%22reports/Berlin%22]', 'GET /en/admin/users', 'GET /?page=admin'],
  ],
  pass: [
    ...['GET /reports', 'GET /en/reports', 'GET /en/reports/', 'GET /reports.json', 'GET /report/Berlin'],
    ...['GET /my-reports/Berlin', 'GET /reports-2024/Berlin', 'GET /backorders', 'GET /?q=orders'],
    ...['GET /?sort=orders&tab=quotes', 'GET /?q=either/or'],
  ],
});

rows(
  'other names that the configuration allows',
  {
    pass: [
      ...['GET /orders/help/me', 'GET /_next/static/chunks/pages/reports/%5Bcity%5D-1f.js'],
      ...['GET /shop/go?to=/reports/Berlin', 'GET /shop/go/orders'],
    ],
    404: ['GET /orders/7', 'GET /orders-faq'],
    '400 ambiguous_path': [
      ...['GET /_next/data/h4sh/orders.json', 'GET /shop/login?next=/reports/Berlin', 'GET /shop/en/staff'],
      'GET /shop/go/../orders',
    ],
  },
  {
    passthrough: {
      include: ['/shop', '/orders/help', '/_next'],
      exclude: ['/shop/staff'],
      allow: ['/_next/static', '/shop/go', '/orders-faq'],
    },
  },
);

rows(
  'an allowed path opens no path that is sold or excluded itself',
  {
    404: ['GET /quotes/7', 'GET /admin/x'],
    'call orders': ['GET /orders'],
    '400 path_spelling': ['GET /Orders'],
    '400 ambiguous_path': ['GET /quotes/..;/7'],
    pass: ['GET /orders/7'],
  },
  { passthrough: { include: undefined, exclude: ['/admin'], allow: ['/quotes', '/admin', '/orders'] } },
);

rows(
  'names of templates with a literal part, without one, and of the root',
  {
    pass: ['GET /reports/Berlin', 'GET /en/reports/Berlin.html', 'GET /a/b'],
    '400 ambiguous_path': [
      'GET /en/reports/Berlin.csv',
      'GET /reports/Berlin.csv/x',
      'GET /_next/data/h4sh/index.json',
    ],
  },
  {
    operations: [
      operation('GET', '/reports/{city}.csv', { id: 'report' }),
      operation('GET', '/{page}', { id: 'page' }),
      operation('GET', '/', { id: 'root' }),
    ],
  },
);

rows('what is excluded', {
  404: [
    ...['GET /admin', 'GET /admin/users?x=1', 'GET /ADMIN/', 'GET /%61dmin', 'GET //admin'],
    'GET /x/..;/admin/users',
  ],
  '405 GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS': ['TRACE /admin'],
  pass: ['GET /administrators', 'GET /wp-admin'],
});

rows(
  'where only some paths are included',
  {
    pass: ['GET /shop', 'POST /shop/cart?x=1', 'GET /shop/', 'GET /shop/a//b;x', 'GET /img/small/1.png'],
    404: [...['GET /img', 'GET /img/', 'GET /Shop', 'GET /shopping', 'GET /', 'GET /cities'], 'GET /shop/staff/rota'],
    '400 ambiguous_path': [
      ...['GET /shop/../internal', 'GET /shop/%2e%2e/internal', 'GET /shop/..;x/internal'],
      ...['GET /shop/..%2finternal', 'GET /shop/..%5cinternal'],
    ],
    'call orders': ['GET /orders'],
    '405 POST, GET, HEAD, OPTIONS': ['DELETE /orders'],
    'call report': ['GET /reports/Berlin'],
  },
  { passthrough: { include: ['/shop', '/img/{size}', '/orders'], exclude: ['/shop/staff'], allow: [] } },
);

describe('behind the path of a base URL', () => {
  const parts: Partial<Parts> = {
    pathPrefix: '/shop/v1',
    operations: [
      operation('GET', '/shop/v1/reports/{city}', { id: 'report' }),
      operation('GET', '/shop/v1/prices.csv'),
    ],
  };
  rows(
    'alone',
    {
      'call report': ['GET /reports/Berlin'],
      '400 ambiguous_path': [
        ...['GET /shop/v1/reports/Berlin', 'GET /en/reports/Berlin', 'GET /image?url=/reports/Berlin'],
        ...['GET /../v1/admin', 'GET /../../internal', 'GET /%2e%2e%2finternal', 'GET /../v1/reports/Berlin'],
        ...['GET /x/..%2freports/Berlin', 'GET /image?url=%2Freports%2FBerlin'],
      ],
      '400 path_spelling': ['GET /Reports/Berlin'],
      '400 request_target': ['GET /..\\internal', 'GET http://shop.example/reports/Berlin'],
      pass: ['GET /reports', 'GET /x'],
      404: ['GET /prices.csv', 'GET /admin'],
    },
    parts,
  );

  const behind = { ...parts, passthrough: { include: ['/shop'], exclude: ['/shop/staff'], allow: [] } };
  rows(
    'included and excluded paths are those behind it',
    {
      pass: ['GET /shop/cart', 'GET /shop/v1/cart'],
      404: ['GET /shop/staff', 'GET /cart'],
    },
    behind,
  );
  const deeper = { ...parts, passthrough: { include: ['/shop/v1'], exclude: [], allow: [] } };
  rows('so that its own path includes nothing', { 404: ['GET /cart'] }, deeper);

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

rows(
  'with nothing that passes',
  {
    'call report': ['GET /reports/Berlin'],
    'head report': ['HEAD /reports/Berlin'],
    'options order': ['OPTIONS /orders'],
    '405 GET, HEAD, OPTIONS': ['POST /reports/Berlin', 'POST /news'],
    own: [
      ...['GET /Reports/Berlin', 'GET //reports/Berlin', 'GET /quotes/7', 'GET /cities', 'GET /admin', 'TRACE /'],
      ...['GET http://evil.example/reports/Berlin', 'GET http://evil.example/'],
    ],
  },
  { passthrough: undefined },
);

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

rows(
  'a path of two operations of which one is not sold in place is neither given away nor passed',
  { 404: ['GET /checkouts/c1', 'GET /checkout%73/c1'], 'call any': ['GET /news/1'] },
  { operations: [operation('GET', '/checkouts/{id}'), operation('GET', '/{kind}/{id}', { id: 'any', free: true })] },
);

rows(
  'the start of a sold path is found, whatever the server decodes, but not behind another one',
  {
    '400 ambiguous_path': [
      ...['GET /orders/%2f42/confirm::$DATA', 'GET /orders/a%252fb/confirm-all', 'GET /orders/a%5Cb/confirmed'],
    ],
    pass: ['GET /carts/%2f42/confirmed'],
  },
  { operations: [operation('POST', '/orders/{id}/confirm')] },
);

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
