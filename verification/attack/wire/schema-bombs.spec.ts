import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { MAX_CONFIG_BYTES } from '../../../src/config/document/parse.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/problems/problem.ts';
import { compileCatalogue } from '../../../src/resources/catalogue.ts';
import { attack } from '../catalogue.ts';

/** A configuration is refused or accepted in less, ms; reading 16 MiB takes three seconds. */
const MAX_CHECK_MS = 10_000;
/** The longest refusal, characters. */
const MAX_MESSAGE = 20_000;

/** A configuration around one input schema, as JSON, which is YAML. */
function configWith(inputSchema: unknown): string {
  const resource = {
    name: 'Bomb',
    description: 'A bomb',
    inputSchema,
    backend: { method: 'POST', path: '/' },
    pricing: { type: 'free' },
    expose: ['http'],
    payments: [],
  };
  return JSON.stringify({
    version: 1,
    merchant: { id: 'shop', name: 'Shop', publicBaseUrl: 'https://shop.example' },
    backend: { baseUrl: 'http://127.0.0.1:3000' },
    storage: { sqlite: { path: ':memory:' } },
    protocols: { http: { enabled: true } },
    resources: { bomb: resource },
  });
}

const object = (properties: object, rest: object = {}): object => ({ type: 'object', properties, ...rest });
const text = { type: 'string' };
const named = (count: number, make: (at: number) => unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, make(at)]));
/** Each definition refers to the next one twice. */
const doubling = (levels: number): object =>
  object(
    { a: { $ref: '#/$defs/p0' } },
    {
      $defs: named(levels, (at) =>
        at === levels - 1 ? text : { allOf: [{ $ref: `#/$defs/p${at + 1}` }, { $ref: `#/$defs/p${at + 1}` }] },
      ),
    },
  );
const nested = (levels: number): string =>
  `${'{"type":"object","properties":{"a":'.repeat(levels)}{"type":"string"}${'}}'.repeat(levels)}`;
const laughs = (): string => {
  const lines = ['version: 1', 'a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]'];
  for (let at = 1; at < 10; at += 1)
    lines.push(
      `a${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join(', ')}]`,
    );
  return lines.join('\n');
};

const BOMBS: Readonly<Record<string, string>> = {
  'a reference to itself': configWith(object({ a: { $ref: '#/properties/a' } })),
  'a circle of references': configWith(
    object({ a: { $ref: '#/$defs/p0' } }, { $defs: { p0: { $ref: '#/$defs/p1' }, p1: { $ref: '#/$defs/p0' } } }),
  ),
  'a schema of itself': configWith(object({ a: { $ref: '#' } })),
  'a reference to another host': configWith(object({ a: { $ref: 'http://127.0.0.1:1/schema.json' } })),
  'a reference to a file': configWith(object({ a: { $ref: 'file:///etc/passwd' } })),
  'a dynamic reference': configWith(object({ a: { $dynamicRef: '#node' } }, { $dynamicAnchor: 'node' })),
  'as many properties as a file can hold': configWith(object(named(MAX_CONFIG_BYTES / 28, () => text))),
  'a hundred thousand properties': configWith(object(named(100_000, () => text))),
  'references that double thirty times': configWith(doubling(30)),
  'ten thousand levels': configWith('NESTED').replace('"NESTED"', () => nested(10_000)),
  'a hundred thousand alternatives': configWith(
    object({ a: { anyOf: Array.from({ length: 100_000 }, (_, at) => ({ const: at })) } }),
  ),
  'a pattern that no linear engine can run': configWith(object({ a: { ...text, pattern: '^(a+)+\\1$' } })),
  'a pattern whose counts multiply': configWith(object({ a: { ...text, pattern: '^((a{99}){99}){99}$' } })),
  'a pattern of a megabyte': configWith(object({ a: { ...text, pattern: 'a?'.repeat(500_000) } })),
  'a name of a prototype': configWith(object({})).replace(
    '"properties":{}',
    '"properties":{"__proto__":{"type":"string"}}',
  ),
  'aliases that laugh a billion times': laughs(),
};

describe('schemas and configurations that explode', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'acg-bombs-'));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  /** All start-up work on a configuration before a listener or store opens. */
  const start = (config: string): unknown => {
    const path = join(directory, 'config.yaml');
    writeFileSync(path, config);
    return compileCatalogue(loadConfig({ path, env: {} }));
  };

  for (const [name, config] of Object.entries(BOMBS))
    attack('B12', `${name}: refused at start, quickly and with a short text`, () => {
      const before = process.cpuUsage();
      assert.throws(
        () => start(config),
        (thrown) => thrown instanceof ConfigError && thrown.message.length < MAX_MESSAGE,
      );
      // CPU time, not wall time: on a busy machine they differ a lot.
      const { user, system } = process.cpuUsage(before);
      const tookMs = (user + system) / 1_000;
      assert.ok(tookMs < MAX_CHECK_MS, `${tookMs} ms`);
    });

  attack('B12', 'the same configuration with a harmless schema is accepted', () => {
    assert.doesNotThrow(() => start(configWith(object({ a: text }))));
  });
});
