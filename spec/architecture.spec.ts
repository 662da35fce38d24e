import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

/**
 * The rooms a room may import from. Arrows point one way: adapters and the pipeline know the domain, the domain never knows them; stores
 * implement ports that the domain owns, and only the wiring knows a store.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  json: [],
  problems: [],
  sidecar: [],
  time: [],
  crypto: ['json'],
  errors: ['json'],
  events: ['json'],
  backend: ['events'],
  receipts: ['events'],
  checkouts: ['crypto', 'json', 'time'],
  mandates: ['backend', 'crypto', 'json', 'time'],
  payments: ['backend', 'crypto', 'errors', 'events', 'json', 'mandates', 'receipts', 'time'],
  resources: ['backend', 'crypto', 'errors', 'events', 'json', 'mandates', 'payments', 'problems'],
  store: ['checkouts', 'crypto', 'events', 'mandates', 'payments', 'receipts', 'time'],
  server: ['errors', 'events', 'json', 'resources', 'time'],
  config: [
    'backend',
    'checkouts',
    'crypto',
    'events',
    'json',
    'mandates',
    'payments',
    'problems',
    'resources',
    'server',
    'store',
  ],
  operator: ['errors', 'events', 'receipts', 'resources', 'server', 'store'],
  pipeline: [
    'backend',
    'errors',
    'events',
    'json',
    'mandates',
    'payments',
    'receipts',
    'resources',
    'server',
    'sidecar',
    'store',
  ],
  adapters: [
    'backend',
    'checkouts',
    'crypto',
    'errors',
    'events',
    'json',
    'mandates',
    'payments',
    'pipeline',
    'receipts',
    'resources',
    'server',
  ],
  telemetry: [
    'backend',
    'checkouts',
    'errors',
    'mandates',
    'payments',
    'pipeline',
    'problems',
    'server',
    'store',
    'time',
  ],
};
/** The composition root and the entry may import everything. */
const ROOTS = new Set(['app', 'cli', 'main']);
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
      /src\/(?:payments|mandates|json|config|resources|events|store)\//.test(name),
    ))
      for (const target of importsOf(file)) assert.notEqual(target, 'express', file);
  });
});
