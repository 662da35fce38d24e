import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { routeLines, routeTable } from '../../src/app/route-table.ts';
import type { Changes } from '../config/document/document.ts';
import { selling } from '../config/sections/acp.ts';
import { asking } from '../config/sections/ap2.ts';
import { compiled, IN_PLACE, passing, R, resource } from './routes.ts';

/** The rows behind those of the gateway's own paths, as texts. */
function rows(...changes: readonly Changes[]): readonly string[] {
  return table(...changes).filter((row) => !/ gateway /.test(row) || /everything else|\{|no route/.test(row));
}

function table(...changes: readonly Changes[]): readonly string[] {
  return routeTable(...compiled(Object.assign({}, ...changes))).map(({ path, method, becomes, where }) =>
    [path, method, becomes, where].join(' '),
  );
}

const SOLD = [
  '/reports/{city} GET sold resources.report over http, origin',
  '/reports/{city} any other refused 405: serves GET, HEAD, OPTIONS',
];
const REST = 'everything else any passed backend.passthrough';

describe('the table of routes', () => {
  it('is empty where nothing passes and nothing is sold in place', () => {
    assert.deepEqual(table({}), []);
    assert.deepEqual(routeLines(...compiled({})), []);
  });

  it("begins with the gateway's own paths, with the adapters that are enabled", () => {
    assert.deepEqual(
      table(passing(), { 'protocols.mcp': { enabled: true, mountPath: '/tools' } }).filter((row) =>
        /gateway/.test(row),
      ),
      [
        '/health any gateway probes',
        '/ready any gateway probes',
        '/.well-known/agent-commerce any gateway discovery',
        '/api/resources and below any gateway listing, http adapter',
        '/api/receipts and below any gateway operators',
        '/api/events and below any gateway operators',
        '/console and below any gateway operators',
        '/tools and below any gateway mcp adapter',
      ],
    );
    const all = table(selling({ 'protocols.a2a.enabled': true, ...IN_PLACE })).join('\n');
    for (const row of [
      '/.well-known/agent-card.json any gateway a2a adapter',
      '/a2a and below any gateway a2a adapter',
      '/.well-known/acp.json any gateway acp adapter',
      '/acp and below any gateway acp adapter',
    ])
      assert.ok(all.includes(row), row);
    assert.match(table(asking(IN_PLACE)).join('\n'), /^\/\.well-known\/jwks\.json any gateway public keys$/m);
  });

  it('says what is sold in place, and that nothing else passes', () =>
    assert.deepEqual(rows(IN_PLACE), [...SOLD, 'everything else any gateway 404: no route']));

  it('says what is sold in place beside what passes', () =>
    assert.deepEqual(rows(IN_PLACE, passing()), [...SOLD, REST]));

  it('says that the path of what is sold elsewhere passes by no method', () =>
    assert.deepEqual(rows(passing()), ['/reports/{city} any refused 404: resources.report over http', REST]));

  it('says what needs a mandate', () => {
    const free = { [`${R}.pricing`]: { type: 'free' }, [`${R}.payments`]: [] };
    assert.equal(
      rows(asking({ ...free, ...IN_PLACE }))[0],
      '/reports/{city} GET free resources.report over http, origin; needs a mandate',
    );
  });

  it('tells the methods of one path apart, whatever its parameters are called', () => {
    const orders = resource('order', 'POST', '/orders/{id}', { price: '1', expose: ['origin'] });
    const order = resource('look', 'GET', '/orders/{number}', { expose: ['origin'] });
    const change = resource('change', 'PUT', '/orders/{id}');
    assert.deepEqual(rows(passing(), IN_PLACE, orders, order, change).slice(2), [
      '/orders/{id} POST sold resources.order over origin',
      '/orders/{id} GET free resources.look over origin',
      '/orders/{id} PUT refused 405: serves POST, GET, HEAD, OPTIONS',
      '/orders/{id} any other refused 405: serves POST, GET, HEAD, OPTIONS',
      REST,
    ]);
  });

  it('shows free operations that pass', () => {
    const [city, news] = [resource('city', 'GET', '/cities'), resource('news', 'GET', '/news', { expose: ['origin'] })];
    assert.deepEqual(rows(passing(), IN_PLACE, city, news).slice(2), [
      '/cities GET passed backend.passthrough; resources.city over http',
      '/cities any other passed backend.passthrough',
      '/news GET free resources.news over origin',
      '/news any other passed backend.passthrough',
      REST,
    ]);
  });

  it('shows the steps of a checkout at the same server', () => {
    const shown = rows(selling(passing())).filter((row) => /checkout/.test(row));
    assert.equal(shown.length, 4);
    assert.match(shown[0] ?? '', /^\/checkout_sessions any refused 404: protocols\.acp\.backend\.operations\.create/);
  });

  it('says what include and exclude do', () => {
    const settings = { include: ['/shop', '/mcp', '/shop/staff/{id}'], exclude: ['/shop/staff'] };
    assert.deepEqual(table(IN_PLACE, passing(settings), { 'protocols.mcp.enabled': true }).slice(8), [
      ...SOLD,
      '/shop/staff and below any refused 404: backend.passthrough.exclude',
      '/shop and below any passed backend.passthrough.include',
      '/mcp and below any gateway /mcp',
      '/shop/staff/{id} and below any refused 404: backend.passthrough.exclude',
      'everything else any refused 404: backend.passthrough.include',
    ]);
  });

  it('names the rule that keeps a free operation from passing', () => {
    const city = resource('city', 'GET', '/cities');
    const where = (settings: object) => rows(IN_PLACE, city, passing(settings)).find((row) => /^\/cities/.test(row));
    assert.equal(where({ exclude: ['/cities'] }), '/cities any refused 404: backend.passthrough.exclude');
    assert.equal(where({ include: ['/shop'] }), '/cities any refused 404: backend.passthrough.include');
    assert.equal(
      where({ include: ['/cities'] }),
      '/cities GET passed backend.passthrough.include; resources.city over http',
    );
  });

  it('names the usual pages that do not pass', () =>
    assert.ok(rows(passing({})).includes('/admin and below any refused 404: backend.passthrough.exclude, as usual')));

  it('has the paths that callers use, without that of the base URL', () =>
    assert.deepEqual(rows(IN_PLACE, { 'backend.baseUrl': 'http://127.0.0.1:3000/v1' }).slice(0, 2), SOLD));
});

describe('the lines of the table', () => {
  const health = resource('health', 'GET', '/health', { expose: ['origin'] });
  const page = resource('page', 'POST', '/{page}', { expose: ['http', 'origin'] });
  const lines = routeLines(...compiled({ ...IN_PLACE, ...health, ...page }));

  it('are aligned in columns', () => {
    const columns = ['method', 'becomes', 'where'].map((name) => lines[0]?.indexOf(`  ${name}`) ?? 0);
    const report = lines.find((line) => line.startsWith('/reports/{city}')) ?? '';
    assert.deepEqual(
      columns.map((at) => report.slice(at, at + 2)),
      ['  ', '  ', '  '],
    );
    assert.match(report, /^\/reports\/\{city\} +GET {8}sold {5}resources\.report over http, origin$/);
    for (const line of lines) assert.doesNotMatch(line, /\s$/);
  });

  it('end with the paths of the backend that the gateway answers itself', () =>
    assert.deepEqual(
      lines.filter((line) => line.startsWith('shadowed')),
      [
        'shadowed: resources.health.backend.path /health: the gateway answers /health itself',
        'shadowed: resources.page.backend.path /{page}: the gateway answers /health itself, one value of this path',
      ],
    ));
});
