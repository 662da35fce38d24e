import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ConfigDocument } from '../../src/config/document/document.ts';
import { changesBetween, KEYS } from '../../src/config/reload.ts';

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
}

/** Every key of the schema that has no keys of its own. */
function leavesOf({ properties }: Node, path = ''): readonly string[] {
  if (properties === undefined) return [path];
  return Object.entries(properties).flatMap(([name, node]) => leavesOf(node, path === '' ? name : `${path}.${name}`));
}

const LEAVES = leavesOf(schema as Node);
const within = (path: string, section: string): boolean => path === section || path.startsWith(`${section}.`);

describe('the table of keys that can be changed while the gateway runs', () => {
  it('has each key of the schema once: none is forgotten, and none is said twice', () => {
    const counts = LEAVES.map((leaf) => [leaf, Object.keys(KEYS).filter((key) => within(leaf, key)).length]);
    assert.deepEqual(
      counts.filter(([, count]) => count !== 1),
      [],
    );
  });

  it('has no key that the schema has not', () => {
    const unknown = Object.keys(KEYS).filter((key) => !LEAVES.some((leaf) => within(leaf, key)));
    assert.deepEqual(unknown, []);
  });

  it('needs a restart for the keys that docs/configuration.md lists', () => {
    const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    const [, section = ''] = text.split(/^## Reload$/m);
    const listed = [...section.matchAll(/^- (.*)$/gm)].flatMap(
      ([, keys = '']) => keys.match(/(?<=`)[\w.]+(?=`)/g) ?? [],
    );
    const restarts = Object.keys(KEYS).filter((key) => KEYS[key] === 'restart');
    assert.deepEqual(listed.toSorted(), restarts.toSorted());
  });
});

const BASE = `
version: 1
merchant: { id: shop, name: Shop, publicBaseUrl: https://shop.example }
backend: { baseUrl: http://127.0.0.1:3000 }
storage: { redis: { url: "redis://:first@redis.example:6379/1" } }
payments:
  x402:
    payTo: "0x1"
    facilitator: { mode: remote, url: https://one.example, fallbacks: [{ url: https://two.example, auth: { type: bearer, token: a } }] }
resources:
  report: { name: Report, backend: { method: GET, path: /report }, pricing: { type: fixed, amount: "1", currency: USDC } }
`;
const read = (text: string): ConfigDocument => parse(text) as ConfigDocument;
const changed = (from: string | RegExp, to: string) => changesBetween(read(BASE), read(BASE.replace(from, to)));

describe('what changed between two documents', () => {
  it('is nothing between equal ones, and a default that is written out is no change', () => {
    assert.deepEqual(changed('x', 'x'), { changed: [], restart: [] });
    assert.deepEqual(changed('backend:', 'server: { port: 8402 }\nbackend:'), { changed: [], restart: [] });
  });

  it('is named by path, down to the value, without the value', () => {
    assert.deepEqual(changed('amount: "1"', 'amount: "2"'), {
      changed: ['resources.report.pricing.amount'],
      restart: [],
    });
  });

  it('is an added or removed resource as well', () => {
    const more = changed('  report:', '  other: { name: Other }\n  report:');
    assert.deepEqual(more, { changed: ['resources.other'], restart: [] });
  });

  for (const [from, to, path] of [
    ['id: shop', 'id: other', 'merchant.id'],
    ['"0x1"', '"0x2"', 'payments.x402.payTo'],
    ['127.0.0.1:3000', '127.0.0.1:3001', 'backend.baseUrl'],
    ['redis.example', 'other.example', 'storage.redis.url'],
    ['6379/1', '6379/2', 'storage.redis.url'],
    ['https://two.example', 'https://three.example', 'payments.x402.facilitator.fallbacks'],
    ['backend:', 'server: { port: 8403 }\nbackend:', 'server.port'],
  ] as const)
    it(`${path} needs a restart`, () => {
      assert.deepEqual(changed(from, to), { changed: [path], restart: [path] });
    });

  for (const [from, to, path] of [
    [':first@', ':second@', 'storage.redis.url'],
    ['token: a', 'token: b', 'payments.x402.facilitator.fallbacks'],
  ] as const)
    it(`the login in ${path} does not`, () => {
      assert.deepEqual(changed(from, to), { changed: [path], restart: [] });
    });
});
