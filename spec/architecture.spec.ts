import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

/**
 * The rooms a room may import from. Arrows point one way: fronts and layers know the domain, the domain never knows them; stores
 * implement ports that the domain owns, and only the composition root knows a store.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  json: [],
  problems: [],
  patterns: [],
  time: [],
  'in-time': [],
  digest: [],
  crypto: [],
  errors: ['json'],
  events: ['json'],
  receipts: ['events'],
  merchant: ['events', 'errors'],
  mandates: ['digest', 'json', 'keys', 'limits', 'merchant'],
  payments: ['crypto', 'digest', 'errors', 'events', 'json', 'limits', 'mandates', 'merchant', 'receipts', 'time'],
  checkouts: ['crypto', 'events', 'json', 'time'],
  store: ['checkouts', 'crypto', 'events', 'in-time', 'mandates', 'payments', 'receipts'],
  catalogue: ['errors', 'events', 'json', 'keys', 'mandates', 'merchant', 'patterns', 'payments', 'problems'],
  config: [
    'catalogue',
    'checkouts',
    'crypto',
    'events',
    'json',
    'keys',
    'limits',
    'mandates',
    'merchant',
    'payments',
    'problems',
    'store',
  ],
  limits: [],
  sidecar: [],
  http: ['catalogue', 'errors', 'events', 'json'],
  call: ['catalogue', 'errors', 'events', 'http', 'json', 'mandates', 'merchant', 'payments', 'receipts'],
  overload: ['errors', 'http'],
  layers: [
    'call',
    'catalogue',
    'errors',
    'events',
    'http',
    'json',
    'limits',
    'mandates',
    'merchant',
    'overload',
    'payments',
    'receipts',
    'sidecar',
    'store',
  ],
  fronts: [
    'call',
    'catalogue',
    'checkouts',
    'errors',
    'events',
    'http',
    'json',
    'keys',
    'limits',
    'mandates',
    'merchant',
    'overload',
    'patterns',
    'payments',
    'receipts',
  ],
  keys: ['json'],
  console: ['catalogue', 'http'],
  operator: ['errors', 'events', 'http', 'limits', 'receipts', 'store'],
  probes: ['http', 'in-time', 'mandates', 'payments', 'store'],
  telemetry: ['call', 'checkouts', 'errors', 'http', 'in-time', 'layers', 'merchant', 'payments', 'probes', 'problems'],
};
/** The composition root and the entry may import everything. */
const ROOTS = new Set([
  'gateway',
  'server',
  'connections',
  'management',
  'main',
  'cli',
  'plain-express',
  'till',
  'mandate-desk',
  'checkout-desk',
  'storefront',
  'publication',
  'backlog',
  'housekeeping',
  'vital-signs',
  'edges',
  'open-backend',
  'stand-still',
]);
const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+'([^']+)'|import\('([^']+)'\)/g;

const sources = globSync('src/**/*.ts');

function importsOf(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? '');
}

function room(file: string): string {
  return (path.relative('src', file).split(path.sep)[0] ?? '').replace(/\.ts$/, '');
}

describe('the house', () => {
  it('has source files to look at', () => assert.ok(sources.length > 50));

  for (const file of sources) {
    it(`${file} imports in the allowed direction only`, () => {
      const from = room(file);
      if (ROOTS.has(from)) return;
      const allowed = MAY_IMPORT[from];
      assert.ok(allowed, `${from} is a new room: say above what it may import`);
      for (const target of importsOf(file).filter((name) => name.startsWith('.'))) {
        const to = room(path.join(path.dirname(file), target));
        if (to === from || target.endsWith('.json')) continue;
        assert.ok(allowed.includes(to), `${file} imports ${target}: ${from} may not know ${to}`);
      }
    });
  }

  it('has no room that leads back to itself', () => {
    const reaches = (from: string, to: string, seen: readonly string[] = []): boolean =>
      (MAY_IMPORT[from] ?? []).some(
        (next) => next === to || (!seen.includes(next) && reaches(next, to, [...seen, next])),
      );
    for (const name of Object.keys(MAY_IMPORT))
      assert.equal(reaches(name, name), false, `${name} imports itself through others`);
  });

  it('keeps protocol knowledge free of the web framework', () => {
    for (const file of sources.filter((name) =>
      /src\/(?:payments|mandates|json|config|catalogue|events|store)\//.test(name),
    ))
      for (const target of importsOf(file)) assert.notEqual(target, 'express', file);
  });

  it('has no file over 300 lines', () => {
    for (const file of sources) assert.ok(readFileSync(file, 'utf8').split('\n').length <= 301, file);
  });
});
