import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { addressOverlaps } from '../../../src/config/sections/resources.ts';
import type { ResourceConfig } from '../../../src/resources/settings.ts';
import { pathShape } from '../../../src/resources/url-template.ts';
import { type Changes, load, problems } from '../document/document.ts';
import { type Row, refusalsOf } from '../refusals.ts';

const R = 'resources.report';
const IN_PLACE: Changes = { [`${R}.expose`]: ['http', 'origin'] };
const report = (changes: Changes) => load(changes).resources[0] ?? assert.fail('no resource');

describe('expose: origin', () => {
  it('gives a resource a public address: the path below the public URL, without its query', () => {
    assert.equal(report(IN_PLACE).address, 'https://api.shop.example/reports/{city}');
    assert.deepEqual(report(IN_PLACE).exposedVia, ['http', 'origin']);
    const behind = {
      'merchant.publicBaseUrl': 'https://shop.example/api/',
      'backend.baseUrl': 'http://127.0.0.1:1/v1',
    };
    const fixed = { [`${R}.backend.path`]: '/reports/{city}?format=json' };
    assert.equal(report({ ...IN_PLACE, ...behind, ...fixed }).address, 'https://shop.example/api/reports/{city}');
  });
  it('is not what a resource has when left out', () => assert.equal(report({}).address, undefined));
  it('needs no adapter: it may stand alone, also where HTTP is switched off', () => {
    const alone = report({ [`${R}.expose`]: ['origin'], 'protocols.http.enabled': false });
    assert.deepEqual([alone.exposedVia, alone.address], [['origin'], 'https://api.shop.example/reports/{city}']);
    const off = report({ ...IN_PLACE, 'protocols.http.enabled': false });
    assert.deepEqual(off.exposedVia, ['origin']);
  });
  it('has strictQuery off unless it is set', () => {
    assert.equal(report(IN_PLACE).backend.strictQuery, false);
    assert.equal(report({ ...IN_PLACE, [`${R}.backend.strictQuery`]: true }).backend.strictQuery, true);
  });
});

const input = (properties: object, required: readonly string[] = Object.keys(properties)): Changes => ({
  [`${R}.inputSchema`]: { type: 'object', properties, required },
});
const string = { type: 'string' };
const at = (path: string): Changes => ({ [`${R}.backend.path`]: path });

describe('a resource that cannot be sold at its own address', () => {
  const AT = `${R}.backend.path`;
  const both = input({ a: string, b: string });
  const ROWS: readonly Row[] = [
    ['as two inputs are one text', { ...at('/r/{a}-{b}'), ...both }, AT, /it has two parameters in one segment/],
    [
      'as an input has no text of its own',
      { ...at('/r/{a}'), ...input({ a: { type: ['string', 'integer'] } }) },
      AT,
      /one text form for a/,
    ],
    [
      'as an input of the query is an object',
      input({ city: string, filter: { type: 'object' } }, ['city']),
      AT,
      /one text form for filter/,
    ],
    ['as servers read its brackets differently', input({ city: string, 'tags[]': string }, ['city']), AT, /brackets/],
  ];
  refusalsOf((changes) => ({ ...IN_PLACE, ...changes }), [])(ROWS);

  for (const [rule, changes] of ROWS)
    it(`is sold on other channels ${rule}`, () => assert.deepEqual(problems(changes as Changes), []));
});

describe('two resources at one address', () => {
  const other = (path: string, more: object = {}): Changes => ({
    'resources.other': {
      name: 'Other',
      inputSchema: { type: 'object', properties: { town: string }, required: path.includes('{') ? ['town'] : [] },
      backend: { method: 'GET', path },
      pricing: { type: 'free' },
      ...more,
    },
  });
  const origin = { expose: ['origin'] };

  const DEAR = { pricing: { type: 'fixed', amount: '5', currency: 'USDC' } };
  const AT = 'resources.other.backend.path';
  const TAKEN = /must not be an address of resources\.report too/;
  const REFUSED: readonly Row[] = [
    ['both sold there', { ...IN_PLACE, ...other('/reports/{town}', origin) }, AT, TAKEN],
    ['both sold there, in other letters', { ...IN_PLACE, ...other('/Reports/{town}', origin) }, AT, TAKEN],
    ['with other fixed queries', { ...IN_PLACE, ...other('/reports/{town}?format=csv', origin) }, AT, TAKEN],
    ['one of which is one value of the other', { ...IN_PLACE, ...other('/reports/summary', origin) }, AT, TAKEN],
    ['one of which is one of the other, and sold elsewhere', { ...IN_PLACE, ...other('/reports/summary') }, AT, TAKEN],
    [
      'of different prices, none of which is sold there',
      other('/reports/summary', DEAR),
      AT,
      /must not be an address of resources\.report too while their prices or mandates differ/,
    ],
  ];
  refusalsOf((changes) => changes, [])(REFUSED);

  for (const [rule, changes] of [
    [
      'with different methods',
      { ...other('/reports/{town}', { ...origin, backend: { method: 'POST', path: '/reports/{town}' } }), ...IN_PLACE },
    ],
    ['of different lengths', { ...other('/reports/{town}/today', origin), ...IN_PLACE }],
    ['with another first segment', { ...other('/quotes/{town}', origin), ...IN_PLACE }],
    ['which are one operation, sold there as one of them', { ...other('/reports/{town}'), ...IN_PLACE }],
    ['of one price, none of which is sold there', { ...other('/reports/summary'), [`${R}.pricing`]: { type: 'free' } }],
  ] as const)
    it(`are accepted ${rule}`, () => assert.deepEqual(problems(changes), []));

  it('are named together with the path that has to change', () => {
    const { resources } = load({ ...IN_PLACE, ...other('/quotes/{town}', origin) });
    const moved = resources.map((resource) => ({ ...resource, backend: { ...resource.backend, path: '/x/{y}' } }));
    assert.deepEqual(
      addressOverlaps(moved).map(({ path }) => path),
      ['resources.other.backend.path'],
    );
    assert.deepEqual(addressOverlaps(resources), []);
  });

  it('are those that a comparison of all pairs finds', () => {
    const any = report(IN_PLACE);
    const { address } = any;
    const segment = fc.constantFrom('a', 'B', 'b', '', '{x}', '{y}', 'c{x}');
    const operation = fc.record({
      method: fc.constantFrom('GET', 'POST'),
      segments: fc.array(segment, { minLength: 1, maxLength: 3 }),
      sold: fc.boolean(),
      needs: fc.constantFrom([], ['ap2'] as const),
    });
    const made = fc.array(operation, { maxLength: 12 }).map((operations) =>
      operations.map(({ method, segments, sold, needs }, index): ResourceConfig => {
        const backend = { ...any.backend, method, path: `/${segments.join('/')}` };
        return { ...any, id: `r${index}`, address: sold ? address : undefined, authorization: needs, backend };
      }),
    );
    let found = 0;
    fc.assert(
      fc.property(made, (resources) => {
        const expected = resources.filter((resource, index) =>
          resources.slice(0, index).some((earlier) => collide(resource, earlier)),
        );
        const told = addressOverlaps(resources);
        found += told.length;
        assert.deepEqual(
          told.map(({ path }) => path),
          expected.map(({ id }) => `resources.${id}.backend.path`),
        );
        for (const [index, { message }] of told.entries()) {
          const named = resources.find(({ id }) => message.includes(`resources.${id} `));
          assert.ok(named && expected[index] && collide(expected[index], named), message);
        }
      }),
      { numRuns: 300 },
    );
    assert.ok(found > 100, `${found} overlaps`);
  });
});

/** Whether a server may run either at one address, and one is sold there or on other terms. */
function collide(one: ResourceConfig, other: ResourceConfig): boolean {
  const alike = one.authorization.length === other.authorization.length;
  if (one.address === undefined && other.address === undefined && alike) return false;
  const [a, b] = [one, other].map(({ backend }) => backend.path.toLowerCase().split('/'));
  if (one.backend.method !== other.backend.method || a === undefined || a.length !== b?.length) return false;
  const isOneOperation = pathShape(one.backend.path) === pathShape(other.backend.path);
  if (isOneOperation && (one.address === undefined || other.address === undefined)) return false;
  return a.every((text, at) => {
    const both = [text, b[at] ?? ''];
    return both.some((segment) => segment.includes('{')) ? !both.includes('') : text === b[at];
  });
}

describe('a priced path that cannot be kept from passing', () => {
  const priced = { [`${R}.pricing`]: { type: 'fixed', amount: '0.01', currency: 'USDC' } };
  const passing = { 'backend.passthrough': { enabled: true } };
  const found = (changes: Changes) => problems(changes).filter(({ path }) => path === `${R}.backend.path`);

  it('is refused where everything else passes, and only there', () => {
    const odd = { ...priced, ...at('/reports//{city}') };
    assert.match(
      found({ ...odd, ...passing })[0]?.message ?? '',
      /^cannot be kept from passing.*servers read differently/,
    );
    assert.deepEqual(found(odd), []);
  });
  it('is refused in the notation of a router', () => {
    const express = { ...priced, ...at('/reports/:city'), ...input({}) };
    assert.match(found({ ...express, ...passing })[0]?.message ?? '', /a parameter is written \{city\}/);
  });
});
