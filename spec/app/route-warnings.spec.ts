import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { routeWarnings } from '../../src/app/route-warnings.ts';
import { type Changes, load } from '../config/document/document.ts';
import { IN_PLACE, passing, R, resource } from './routes.ts';

function warnings(...changes: readonly Changes[]): readonly string[] {
  return routeWarnings(load(Object.assign({}, ...changes)));
}

/** One test for each row: exactly these settings are warned of, in these words. */
function warns(rows: readonly (readonly [string, readonly Changes[], ...RegExp[]])[]): void {
  for (const [title, changes, ...expected] of rows)
    it(title, () => {
      const found = warnings(...changes);
      assert.equal(found.length, expected.length, found.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(found[index] ?? '', pattern);
    });
}

const PRICED = { price: '0.05' };
const ORIGIN = { expose: ['origin'] };

describe('nothing is warned of', () =>
  warns([
    ['where nothing passes and nothing is sold in place', [{}]],
    ['where something is sold in place', [IN_PLACE]],
    ['where something passes, and it is said what', [passing()]],
    ['where both are, and what is free stands in place', [IN_PLACE, passing(), resource('a', 'GET', '/a', ORIGIN)]],
  ]));

describe('settings of sale in place without it are warned of', () =>
  warns([
    [
      'as headers that no call brings',
      [{ 'backend.originHeaders': ['cookie'] }],
      /^backend\.originHeaders: no resource has origin under expose/,
    ],
    [
      'but not where one has it',
      [IN_PLACE, { 'backend.originHeaders': ['cookie'], [`${R}.backend.strictQuery`]: true }],
    ],
    [
      'as a strict query of no address',
      [{ [`${R}.backend.strictQuery`]: true }],
      /^resources\.report\.backend\.strictQuery: has no effect/,
    ],
  ]));

describe('a public URL with a path is warned of', () => {
  const behind = { 'merchant.publicBaseUrl': 'https://shop.example/api' };
  warns([
    [
      'where something is sold in place',
      [IN_PLACE, behind],
      /^merchant\.publicBaseUrl: its path stands before every address/,
    ],
    ['and nowhere else', [passing(), behind]],
  ]);
});

describe('what the gateway answers itself is warned of', () =>
  warns([
    [
      'where it is sold in place',
      [resource('health', 'GET', '/health', ORIGIN)],
      /^resources\.health\.backend\.path: is not sold at its own address, because the gateway answers \/health/,
    ],
    [
      'where that is one value of its address',
      [resource('page', 'POST', '/{page}', ORIGIN)],
      /^resources\.page\.backend\.path: is not sold at its own address for one value, because/,
    ],
    ['but not where it is sold elsewhere', [IN_PLACE, resource('health', 'GET', '/health')]],
    [
      'where it is included',
      [passing({ include: ['/shop', '/console/a'] })],
      /^backend\.passthrough\.include\[1\]: does not reach the backend, because the gateway answers \/console itself/,
    ],
  ]));

describe('one operation at two prices is warned of', () => {
  const other = (more: Parameters<typeof resource>[3]): Changes => resource('other', 'GET', '/reports/{town}', more);
  const same = /^resources\.other: is the same operation as resources\.report at another price/;
  warns([
    ['where it is free elsewhere', [IN_PLACE, other({})], same],
    ['where neither is sold in place', [other({})], same],
    ['where it is dearer elsewhere', [IN_PLACE, other(PRICED)], same],
    ['but not at the same price', [IN_PLACE, other({ price: '0.010' })]],
    ['but not with another method', [IN_PLACE, resource('other', 'POST', '/reports/{town}', { ...PRICED })]],
    [
      'but not with another fixed query',
      [IN_PLACE, resource('other', 'GET', '/reports/{town}?format=csv', { ...PRICED })],
    ],
    [
      'but not with other headers',
      [
        IN_PLACE,
        other({ ...PRICED, backend: { method: 'GET', path: '/reports/{town}', headers: { 'x-tier': 'gold' } } }),
      ],
    ],
  ]);
});

describe('a passthrough is warned of', () =>
  warns([
    [
      'where it says neither what passes nor what does not',
      [passing({})],
      /^backend\.passthrough: has neither include nor/,
    ],
    ['but not where it passes everything on purpose', [passing({ exclude: [] })]],
    [
      'with a list of its own that opens the usual paths',
      [passing({ exclude: ['/beta'] })],
      /^backend\.passthrough\.exclude: replaces the usual list, so \/actuator, \/admin/,
    ],
    [
      'where a guarded path has no fixed segment',
      [passing(), resource('page', 'POST', '/{page}', PRICED)],
      /^resources\.page: its path has no fixed segment/,
    ],
    [
      'also where the path of the base URL is before it',
      [passing(), { 'backend.baseUrl': 'http://127.0.0.1:3000/v1' }, resource('page', 'POST', '/{page}', PRICED)],
      /^resources\.page: its path has no fixed segment/,
    ],
    [
      'but not where such a path is free',
      [passing({ exclude: ['/x', '/admin'] }), resource('page', 'POST', '/{page}')],
    ],
  ]));

describe('a free operation beside a passthrough is warned of', () => {
  const city = resource('city', 'GET', '/cities');
  warns([
    ['where it passes as well', [passing(), city], /^resources\.city: is free, and its path passes .* as well/],
    ['but not where its path is excluded', [passing({ exclude: ['/cities', '/admin'] }), city]],
    ['but not where its path is not included', [passing({ include: ['/shop'] }), city]],
    ['but not where it is served in place', [passing(), resource('city', 'GET', '/cities', ORIGIN)]],
    [
      'but not where another resource serves it in place',
      [passing(), city, resource('town', 'GET', '/Cities', ORIGIN)],
    ],
    [
      'where only another method is served in place',
      [passing(), city, resource('town', 'POST', '/cities', ORIGIN)],
      /^resources\.city: is free, and its path passes .* as well/,
    ],
    [
      'but not so where the gateway answers the path itself',
      [
        passing({ exclude: ['/health.json', '/admin'] }),
        resource('a', 'GET', '/health', PRICED),
        resource('b', 'PUT', '/health'),
      ],
    ],
    [
      'where its path is held for another method',
      [passing(), resource('change', 'PUT', '/reports/{id}')],
      /^resources\.change: does not pass to the backend, .* \(resources\.report\)/,
    ],
    ['but not so where it is served in place', [passing(), resource('change', 'PUT', '/reports/{id}', ORIGIN)]],
  ]);
});

describe('a free path that may be another name of what is sold is warned of', () => {
  const [quote, terms] = [resource('quote', 'GET', '/quote', PRICED), resource('terms', 'GET', '/quote/terms')];
  warns([
    [
      'where it would pass',
      [passing(), quote, terms],
      /^resources\.terms: does not pass .* backend\.passthrough\.allow$/,
    ],
    [
      'but that it passes where it is allowed',
      [passing({ allow: ['/quote/terms'], exclude: ['/admin'] }), quote, terms],
      /^resources\.terms: is free, and its path passes/,
    ],
    ['but not where nothing passes', [IN_PLACE, quote, terms]],
  ]);
});

describe('a header of sold calls with which people log in is warned of', () => {
  const set = { 'backend.headers': { Authorization: 'Bearer x', 'X-Key': 'y' } };
  warns([
    ['where callers bring it to what passes', [passing(), set], /^backend\.headers\.authorization: .*allowHeaders/],
    ['but not where it is allowed', [passing({ allowHeaders: ['Authorization'], exclude: ['/admin'] }), set]],
    ['but not where nothing passes', [IN_PLACE, set]],
  ]);
});

it('no warning has a configured value', () => {
  const found = warnings(
    passing({ include: ['/c4n4ry', '/console/c4n4ry'] }),
    { 'merchant.publicBaseUrl': 'https://shop.example/c4n4ry', 'backend.baseUrl': 'http://127.0.0.1:3000/c4n4ry' },
    resource('a', 'GET', '/c4n4ry', PRICED),
    resource('b', 'PUT', '/c4n4ry'),
    resource('c', 'GET', '/c4n4ry/free'),
    resource('d', 'GET', '/mcp/c4n4ry', ORIGIN),
    { 'protocols.mcp.enabled': true },
  );
  assert.ok(found.length >= 5, found.join('\n'));
  for (const warning of found) assert.doesNotMatch(warning, /c4n4ry/);
});
