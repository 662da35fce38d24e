import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callersPath, ownPathFinder, samplePath, shadowedPaths } from '../../src/app/open-routes.ts';
import { pathShape } from '../../src/resources/url-template.ts';
import { load } from '../config/document/document.ts';
import { passing, resource } from './routes.ts';

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
