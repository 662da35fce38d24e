import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

/**
 * The folders that a folder of src may import from. Arrows point one way: adapters and the pipeline
 * know the domain, the domain never knows them; stores implement ports that the domain owns, and
 * only the wiring knows a store.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  json: [],
  'mandates/register': [],
  'payments/pricing': [],
  problems: [],
  'resources/patterns': [],
  time: [],
  crypto: ['json'],
  errors: ['json'],
  events: ['json'],
  'server/rate-limit': ['time'],
  'sidecar/injector': ['config', 'json', 'problems', 'sidecar/injection', 'telemetry/log', 'telemetry/metrics'],
  'adapters/acp/validation': ['json', 'resources/patterns'],
  backend: ['events'],
  'mandates/ap2/model': ['json', 'mandates/register'],
  receipts: ['events'],
  checkouts: ['crypto', 'json', 'time'],
  'resources/schemas': ['json', 'problems', 'resources/patterns'],
  'mandates/ap2/token': ['crypto', 'json', 'mandates/ap2/model'],
  mandates: ['mandates/ap2/model', 'mandates/ap2/token', 'mandates/register'],
  'mandates/ap2/trust': ['backend', 'crypto', 'json', 'mandates/ap2/model', 'mandates/ap2/token', 'time'],
  'payments/ledger': ['crypto', 'events', 'mandates', 'mandates/register', 'receipts'],
  'mandates/ap2/chain': ['json', 'mandates/ap2/model', 'mandates/ap2/token', 'mandates/ap2/trust', 'time'],
  'mandates/ap2/checkout': ['crypto', 'json', 'mandates/ap2/model', 'mandates/ap2/token', 'mandates/ap2/trust', 'time'],
  payments: ['payments/ledger'],
  'mandates/ap2/constraints': [
    'crypto',
    'json',
    'mandates/ap2/chain',
    'mandates/ap2/checkout',
    'mandates/ap2/model',
    'mandates/register',
  ],
  'mandates/ap2/verify': [
    'crypto',
    'mandates/ap2/chain',
    'mandates/ap2/checkout',
    'mandates/ap2/constraints',
    'mandates/ap2/model',
    'mandates/ap2/token',
    'mandates/ap2/trust',
    'mandates/register',
  ],
  'payments/x402/wire': ['errors', 'json', 'payments', 'payments/ledger', 'payments/pricing'],
  'payments/x402/evm': ['crypto', 'payments/x402/wire'],
  'payments/x402/chain': [
    'json',
    'payments',
    'payments/ledger',
    'payments/pricing',
    'payments/x402/evm',
    'payments/x402/wire',
    'receipts',
  ],
  'payments/x402/facilitator': ['json', 'payments', 'payments/x402/chain', 'payments/x402/wire'],
  'payments/x402/local': ['payments', 'payments/x402/chain', 'payments/x402/evm', 'payments/x402/wire'],
  'payments/x402/verify': ['payments', 'payments/x402/chain', 'payments/x402/evm', 'payments/x402/wire'],
  'payments/settlement': [
    'backend',
    'crypto',
    'events',
    'json',
    'mandates',
    'mandates/register',
    'payments',
    'payments/ledger',
    'payments/pricing',
    'payments/x402/verify',
    'payments/x402/wire',
    'time',
  ],
  'payments/x402': [
    'payments/x402/chain',
    'payments/x402/evm',
    'payments/x402/facilitator',
    'payments/x402/local',
    'payments/x402/verify',
    'payments/x402/wire',
  ],
  'payments/delivery': ['backend', 'crypto', 'events', 'payments', 'payments/ledger', 'payments/settlement', 'time'],
  'store/port': [
    'checkouts',
    'crypto',
    'events',
    'mandates',
    'mandates/register',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'receipts',
  ],
  'store/redis': [
    'checkouts',
    'events',
    'mandates/register',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'receipts',
    'store/port',
    'time',
  ],
  'store/sqlite': [
    'checkouts',
    'events',
    'mandates/register',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'receipts',
    'store/port',
  ],
  resources: [
    'backend',
    'crypto',
    'errors',
    'events',
    'json',
    'mandates/ap2/checkout',
    'mandates/ap2/verify',
    'payments/pricing',
    'payments/x402/wire',
    'problems',
    'resources/patterns',
    'resources/schemas',
  ],
  store: ['crypto', 'mandates/register', 'payments/ledger', 'store/port', 'store/redis', 'store/sqlite'],
  'server/http': ['errors', 'events', 'json', 'resources'],
  passthrough: ['errors', 'resources', 'server/http'],
  sidecar: ['problems', 'server/http'],
  'operator/console': ['resources', 'server/http'],
  'server/load-shedding': ['errors', 'server/http'],
  'server/listener': ['errors', 'server/http', 'server/load-shedding', 'time'],
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
    'server/load-shedding',
    'server/rate-limit',
    'time',
  ],
  pipeline: [
    'backend',
    'errors',
    'events',
    'json',
    'mandates/ap2/model',
    'mandates/ap2/token',
    'payments/ledger',
    'payments/pricing',
    'payments/settlement',
    'payments/x402/wire',
    'receipts',
    'resources',
    'server/http',
  ],
  adapters: ['json', 'mandates/ap2/token', 'payments/settlement', 'payments/x402/wire', 'pipeline', 'server/http'],
  'adapters/http': ['adapters', 'backend', 'errors', 'json', 'payments/x402/wire', 'pipeline', 'server/http'],
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
    'mandates/ap2/trust',
    'passthrough',
    'payments/x402/wire',
    'problems',
    'resources',
    'resources/schemas',
    'server/rate-limit',
    'store/port',
  ],
  'sidecar/injection': ['config/document', 'problems'],
  'telemetry/health': ['mandates/ap2/trust', 'payments/x402/wire', 'server/http', 'store/port', 'time'],
  'operator/api': ['errors', 'events', 'receipts', 'server/http', 'server/rate-limit', 'store/port'],
  'adapters/json-rpc': [
    'adapters/http',
    'backend',
    'json',
    'payments/x402/wire',
    'pipeline',
    'server/http',
    'server/load-shedding',
  ],
  'config/sections': [
    'checkouts',
    'config/document',
    'crypto',
    'events',
    'mandates/ap2/model',
    'mandates/ap2/trust',
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
  'pipeline/steps': [
    'backend',
    'errors',
    'events',
    'json',
    'mandates',
    'mandates/ap2/model',
    'mandates/ap2/verify',
    'payments/delivery',
    'payments/ledger',
    'payments/settlement',
    'payments/x402/wire',
    'pipeline',
    'resources',
    'store/port',
    'time',
  ],
  'adapters/a2a': [
    'adapters',
    'adapters/json-rpc',
    'crypto',
    'errors',
    'json',
    'mandates/ap2/token',
    'payments/pricing',
    'payments/settlement',
    'payments/x402/wire',
    'pipeline',
    'resources',
    'resources/schemas',
    'server/http',
    'server/load-shedding',
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
    'server/load-shedding',
  ],
  config: [
    'config/document',
    'config/sections',
    'crypto',
    'payments/x402/wire',
    'problems',
    'resources',
    'store/port',
    'store/redis',
  ],
  'pipeline/middleware': [
    'backend',
    'errors',
    'events',
    'mandates',
    'mandates/ap2/model',
    'mandates/register',
    'payments',
    'payments/delivery',
    'payments/ledger',
    'payments/settlement',
    'payments/x402/verify',
    'payments/x402/wire',
    'pipeline',
    'pipeline/steps',
    'receipts',
    'resources',
    'server/http',
    'server/load-shedding',
    'server/rate-limit',
    'sidecar',
    'store/port',
    'time',
  ],
  'telemetry/traces': ['backend', 'payments', 'pipeline', 'pipeline/middleware', 'problems', 'server/http'],
  'telemetry/log': ['errors', 'pipeline', 'pipeline/middleware', 'server/http', 'telemetry/health', 'telemetry/traces'],
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
const ROOTS: ReadonlySet<string> = new Set(['app', 'cli', 'main']);

/** Words of an older vocabulary, and what stands for them (docs/glossary.md). */
const REPLACED: Readonly<Record<string, string>> = {
  backlog: 'write queue',
  cashier: 'settler',
  doorway: 'load shedder',
  NothingOwed: 'SafeToRechallenge',
  presenter: 'response writer',
  vitalSigns: 'processGauges',
};

/** What comments cite, and where its headings are. */
const CITED: Readonly<Record<string, string>> = {
  contract: 'docs/contract.md',
  specification: 'docs/specification.md',
  a2a: 'docs/protocols/a2a.md',
  acp: 'docs/protocols/acp.md',
  ap2: 'docs/protocols/ap2.md',
  mcp: 'docs/protocols/mcp.md',
  x402: 'docs/protocols/x402.md',
};
const CITATION = new RegExp(
  `\\b(${Object.keys(CITED).join('|')}) (\\d+(?:\\.\\d+)?(?:(?:, | and | to )\\d+(?:\\.\\d+)?)*)`,
  'g',
);
/** A comment goes on over the ends of its lines. */
const LINE_OF_COMMENT = /\n\s*(?:\*|\/\/|#|--) ?/g;

const COMMENT_LINE = /^\s*(?:\/\*\*|\*|\/\/)(?!.*biome-ignore)/;
/** Columns. */
const WIDEST_COMMENT = 100;

const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+'([^']+)'|import\('([^']+)'\)/g;
const EXPORT = /^export (?:async )?(?:abstract )?(?:function\*?|const|interface|type|class) ([A-Za-z0-9_]+)/gm;
const WORD = /[A-Za-z_$][\w$]*/g;

const texts = new Map(
  globSync(['{src,tools,spec,verification,deploy}/**/*.{ts,js}', '*.ts'], { exclude: ['**/node_modules/**'] })
    .sort()
    .map((file) => [file, readFileSync(file, 'utf8')] as const),
);
const sources = [...texts.keys()].filter((file) => file.startsWith('src/') && file.endsWith('.ts'));

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

describe('the citations', () => {
  const headings = new Map(
    Object.entries(CITED).map(([name, file]) => {
      const found = [...readFileSync(file, 'utf8').matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm)];
      return [name, new Set(found.map(([, number]) => number))] as const;
    }),
  );
  const pages = globSync(['{src,tools,spec,verification,deploy,docs}/**/*.{ts,js,lua,md,yaml}', '*.md'], {
    exclude: ['**/node_modules/**'],
  });

  it('name headings of documents of this repository', () => {
    const lost: string[] = [];
    let seen = 0;
    for (const file of pages)
      for (const [citation, name = '', numbers = ''] of readFileSync(file, 'utf8')
        .replace(LINE_OF_COMMENT, ' ')
        .matchAll(CITATION))
        for (const number of numbers.match(/\d+(?:\.\d+)?/g) ?? []) {
          seen += 1;
          if (headings.get(name)?.has(number) !== true) lost.push(`${file}: ${citation}`);
        }
    assert.deepEqual(lost, []);
    assert.ok(seen > 300, `${seen} citations`);
  });

  it('name no document that stands elsewhere', () => {
    const elsewhere =
      /\b(?:CONTRACT|SPEC|DESIGN|HOUSE)\b(?:\.md)? (?:part )?\d|reference\/[a-z0-9-]+\.md|\b(?:security|corrections|style)\.md\b/;
    assert.deepEqual(
      pages.filter((file) => file !== 'spec/tidy.spec.ts' && elsewhere.test(readFileSync(file, 'utf8'))),
      [],
    );
  });

  it('of documents link to files that are there', () => {
    const broken = pages
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
          .map(([, target = '']) => target)
          .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(path.join(path.dirname(file), target)))
          .map((target) => `${file}: ${target}`),
      );
    assert.deepEqual(broken, []);
  });
});

describe('the sources', () => {
  it('export nothing that no other file names', () => {
    const named = new Map([...texts].map(([file, text]) => [file, new Set(text.match(WORD))] as const));
    const unused = [...texts.keys()]
      .filter((file) => /^(?:src|tools)\/.*\.ts$/.test(file))
      .flatMap((file) =>
        [...(texts.get(file) ?? '').matchAll(EXPORT)]
          .map(([, name = '']) => name)
          .filter((name) => ![...named].some(([other, words]) => other !== file && words.has(name)))
          .map((name) => `${file}: ${name}`),
      );
    assert.deepEqual(unused, []);
  });

  it('begin each module with what it is for', () => {
    const silent = sources.filter((file) => !/^(?:#![^\n]*\n)?\/\*\*/.test(texts.get(file) ?? ''));
    assert.deepEqual(silent, []);
  });

  it('have no comment wider than a reader wants it', () => {
    const wide = [...texts].flatMap(([file, text]) =>
      text
        .split('\n')
        .map((line, index) => ({ line, at: `${file}:${index + 1}` }))
        .filter(({ line }) => COMMENT_LINE.test(line) && line.length > WIDEST_COMMENT)
        .map(({ at }) => at),
    );
    assert.deepEqual(wide, []);
  });

  it('open gateways in spec/support alone', () => {
    const opening = [...texts.keys()].filter(
      (file) => /^(?:spec|verification)\//.test(file) && /\bcreateGateway\(/.test(texts.get(file) ?? ''),
    );
    assert.deepEqual(
      opening.filter((file) => file !== 'spec/tidy.spec.ts'),
      ['spec/support/gateway.ts'],
    );
  });

  for (const [word, instead] of Object.entries(REPLACED))
    it(`say ${instead} where they said ${word}`, () => {
      const spelled = new RegExp(`\\b${word}\\b`, 'i');
      assert.deepEqual(
        sources.filter((file) => spelled.test(texts.get(file) ?? '')),
        [],
      );
    });
});
