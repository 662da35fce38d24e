import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { sources, texts } from './sources.ts';

/**
 * The folders that a folder of src may import from. Arrows point one way: adapters and the pipeline
 * know the domain, the domain never knows them; stores implement ports that the domain owns, and
 * only the wiring knows a store.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  json: [],
  'linked-list': [],
  problems: [],
  'resources/patterns': [],
  time: ['linked-list'],
  limiter: ['linked-list', 'time'],
  crypto: ['json'],
  'payments/pricing': ['crypto', 'json'],
  errors: ['json'],
  events: ['json', 'time'],
  'sidecar/injector': [
    'config',
    'json',
    'problems',
    'server/http',
    'sidecar/injection',
    'telemetry/log',
    'telemetry/metrics',
  ],
  'adapters/acp/validation': ['json', 'resources/patterns'],
  backend: ['events', 'limiter', 'linked-list'],
  receipts: ['events', 'store/port', 'time'],
  checkouts: ['crypto', 'json', 'store/port', 'time'],
  'resources/schemas': ['json', 'problems', 'resources/patterns'],
  mandates: ['store/port'],
  'mandates/ap2': ['backend', 'crypto', 'json', 'mandates', 'time'],
  'payments/ledger': ['crypto', 'events', 'mandates', 'receipts', 'store/port'],
  payments: ['payments/ledger'],
  'payments/x402/wire': ['crypto', 'errors', 'json', 'payments', 'payments/ledger', 'payments/pricing', 'time'],
  'payments/x402/evm': ['crypto', 'payments/pricing', 'payments/x402/wire'],
  'payments/x402/chain': [
    'json',
    'payments',
    'payments/ledger',
    'payments/pricing',
    'payments/x402/evm',
    'payments/x402/wire',
    'receipts',
    'time',
  ],
  'payments/x402/facilitator': ['json', 'payments', 'payments/x402/chain', 'payments/x402/wire'],
  'payments/x402/local': ['payments', 'payments/x402/chain', 'payments/x402/evm', 'payments/x402/wire', 'time'],
  'payments/x402/verify': ['payments/x402/chain', 'payments/x402/evm', 'payments/x402/wire'],
  'payments/x402/refund': [
    'payments/ledger',
    'payments/settlement',
    'payments/x402/chain',
    'payments/x402/evm',
    'payments/x402/local',
    'payments/x402/wire',
    'time',
  ],
  'payments/settlement': [
    'backend',
    'crypto',
    'events',
    'json',
    'limiter',
    'linked-list',
    'mandates',
    'payments',
    'payments/ledger',
    'payments/pricing',
    'payments/x402/verify',
    'payments/x402/wire',
    'time',
  ],
  'payments/x402': [
    'payments',
    'payments/x402/chain',
    'payments/x402/evm',
    'payments/x402/facilitator',
    'payments/x402/local',
    'payments/x402/refund',
    'payments/x402/verify',
    'payments/x402/wire',
    'time',
  ],
  'payments/delivery': [
    'backend',
    'crypto',
    'events',
    'payments/ledger',
    'payments/settlement',
    'payments/x402/wire',
    'receipts',
    'time',
  ],
  'store/port': ['crypto', 'events'],
  'store/documents': [
    'checkouts',
    'events',
    'mandates',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'receipts',
    'store/port',
  ],
  'store/redis': ['events', 'mandates', 'payments/settlement', 'store/documents', 'store/port', 'time'],
  'store/sqlite': ['events', 'mandates', 'payments/ledger', 'store/documents', 'store/port'],
  resources: [
    'backend',
    'crypto',
    'errors',
    'events',
    'json',
    'mandates/ap2',
    'payments/pricing',
    'payments/x402/wire',
    'problems',
    'resources/patterns',
    'resources/schemas',
  ],
  store: ['crypto', 'mandates', 'payments/ledger', 'store/documents', 'store/port', 'store/redis', 'store/sqlite'],
  'server/http': ['errors', 'events', 'json', 'resources'],
  'server/limits': ['errors', 'limiter', 'linked-list', 'server/http', 'time'],
  passthrough: ['backend', 'errors', 'limiter', 'linked-list', 'resources', 'server/http', 'server/limits', 'time'],
  sidecar: ['problems', 'server/http'],
  'operator/console': ['errors', 'resources', 'server/http'],
  'server/listener': ['errors', 'limiter', 'linked-list', 'server/http', 'server/limits', 'time'],
  'adapters/acp': [
    'adapters/acp/validation',
    'backend',
    'checkouts',
    'errors',
    'events',
    'json',
    'receipts',
    'resources',
    'server/http',
    'server/limits',
    'time',
  ],
  pipeline: [
    'backend',
    'errors',
    'events',
    'json',
    'mandates/ap2',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'payments/x402/wire',
    'receipts',
    'resources',
    'server/http',
    'store/port',
  ],
  adapters: ['json', 'mandates/ap2', 'payments/settlement', 'payments/x402/wire', 'pipeline', 'server/http'],
  'adapters/http': [
    'adapters',
    'backend',
    'errors',
    'json',
    'payments/delivery',
    'payments/ledger',
    'payments/settlement',
    'payments/x402/wire',
    'pipeline',
    'receipts',
    'server/http',
    'store/port',
  ],
  'adapters/origin': [
    'adapters',
    'adapters/http',
    'errors',
    'json',
    'passthrough',
    'payments/x402/wire',
    'pipeline',
    'resources',
    'server/http',
  ],
  'config/document': [
    'backend',
    'checkouts',
    'crypto',
    'json',
    'mandates/ap2',
    'passthrough',
    'payments/settlement',
    'payments/x402/wire',
    'problems',
    'resources',
    'server/limits',
    'store/port',
  ],
  'sidecar/injection': ['config/document', 'problems'],
  'telemetry/health': ['mandates/ap2', 'payments/x402/wire', 'server/http', 'store/documents', 'time'],
  'operator/api': ['errors', 'events', 'limiter', 'receipts', 'server/http', 'server/limits', 'store/port'],
  'adapters/json-rpc': [
    'adapters/http',
    'backend',
    'json',
    'limiter',
    'payments/x402/wire',
    'pipeline',
    'server/http',
    'server/limits',
  ],
  'config/sections': [
    'checkouts',
    'config/document',
    'crypto',
    'events',
    'json',
    'mandates/ap2',
    'passthrough',
    'payments/pricing',
    'payments/x402/evm',
    'payments/x402/wire',
    'problems',
    'resources',
    'resources/schemas',
    'store/port',
    'store/redis',
  ],
  'adapters/a2a': [
    'adapters',
    'adapters/json-rpc',
    'crypto',
    'errors',
    'json',
    'mandates/ap2',
    'payments/settlement',
    'payments/x402/wire',
    'pipeline',
    'resources',
    'resources/schemas',
    'server/http',
    'server/limits',
    'time',
  ],
  'adapters/mcp': [
    'adapters',
    'adapters/json-rpc',
    'errors',
    'json',
    'payments/x402/wire',
    'pipeline',
    'resources',
    'resources/schemas',
    'server/http',
    'server/limits',
  ],
  config: [
    'config/document',
    'config/sections',
    'crypto',
    'events',
    'payments/pricing',
    'payments/x402/wire',
    'problems',
    'resources',
    'resources/schemas',
    'store/redis',
  ],
  'pipeline/middleware': [
    'backend',
    'errors',
    'events',
    'json',
    'mandates',
    'mandates/ap2',
    'payments/delivery',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'payments/x402/verify',
    'payments/x402/wire',
    'pipeline',
    'receipts',
    'resources',
    'server/http',
    'server/limits',
    'sidecar',
    'store/port',
    'time',
  ],
  'telemetry/traces': ['backend', 'payments/settlement', 'pipeline', 'pipeline/middleware', 'problems', 'server/http'],
  'telemetry/log': [
    'errors',
    'pipeline',
    'pipeline/middleware',
    'server/http',
    'telemetry/health',
    'telemetry/traces',
    'time',
  ],
  'telemetry/metrics': [
    'checkouts',
    'payments',
    'payments/ledger',
    'payments/x402/wire',
    'pipeline',
    'pipeline/middleware',
    'server/http',
    'telemetry/log',
    'telemetry/traces',
    'time',
  ],
};

/** The wiring and the commands may import everything. */
const ROOTS: ReadonlySet<string> = new Set(['app', 'cli', 'cli/doctor', 'library', 'main']);

const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+'([^']+)'|import\('([^']+)'\)/g;

function importsOf(file: string): readonly string[] {
  return [...(texts.get(file) ?? '').matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? '');
}

/** The folder below src; a file of src itself is a room of its own. */
function room(file: string): string {
  const below = path.relative('src', file).replace(/\.ts$/, '').split(path.sep);
  return below.length === 1 ? (below[0] ?? '') : below.slice(0, -1).join('/');
}

describe('the rooms of src', () => {
  it('are not empty', () => assert.ok(sources.length > 50));

  for (const file of sources) {
    it(`${file} imports in the allowed direction only`, () => {
      const from = room(file);
      if (ROOTS.has(from)) return;
      const allowed = MAY_IMPORT[from];
      assert.ok(allowed, `${from} is a new folder: say above what it may import`);
      for (const target of importsOf(file).filter((name) => name.startsWith('.'))) {
        const to = room(path.join(path.dirname(file), target));
        if (to === from || target.endsWith('.json')) continue;
        assert.ok(allowed.includes(to), `${file} imports ${target}: ${from} may not know ${to}`);
      }
    });
  }

  it('have no room that leads back to itself', () => {
    const open = new Map<string, 'entered' | 'left'>();
    const enter = (name: string, way: readonly string[]): void => {
      assert.notEqual(open.get(name), 'entered', [...way, name].join(' imports '));
      if (open.has(name)) return;
      open.set(name, 'entered');
      for (const next of MAY_IMPORT[name] ?? []) enter(next, [...way, name]);
      open.set(name, 'left');
    };
    for (const name of Object.keys(MAY_IMPORT)) enter(name, []);
  });

  it('are all there, and use every arrow that they may', () => {
    for (const [from, allowed] of Object.entries(MAY_IMPORT)) {
      const inside = sources.filter((file) => room(file) === from);
      assert.ok(inside.length > 0, `${from} is no folder any more`);
      const used = new Set(
        inside.flatMap((file) => importsOf(file).map((target) => room(path.join(path.dirname(file), target)))),
      );
      for (const to of allowed) assert.ok(used.has(to), `${from} needs ${to} no more`);
    }
  });

  it('keep protocol knowledge free of the web framework', () => {
    for (const file of sources.filter((name) =>
      /src\/(?:payments|mandates|json|config|resources|events|store)\//.test(name),
    ))
      for (const target of importsOf(file)) assert.notEqual(target, 'express', file);
  });
});
