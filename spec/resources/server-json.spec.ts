import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv } from 'ajv';
import { ConfigError } from '../../src/problems/problem.ts';
import { type ServerJsonChoices, serverJson } from '../../src/resources/server-json.ts';
import { type Changes, load } from '../config/document/document.ts';

const R = 'resources.report';
const SOLD: Changes = { 'protocols.mcp.enabled': true, [`${R}.expose`]: ['http', 'mcp'] };

/**
 * What the registry demands of a server without packages: the rules of its schema of 2025-12-11,
 * closed here, and of its validators, which take https alone and no range as a version.
 */
const isPublishable = new Ajv({ strict: true }).compile({
  type: 'object',
  properties: {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json' },
    name: { type: 'string', minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' },
    title: { type: 'string', minLength: 1, maxLength: 100 },
    description: { type: 'string', minLength: 1, maxLength: 100 },
    version: { type: 'string', maxLength: 255, pattern: '^\\d+\\.\\d+\\.\\d+' },
    icons: {
      type: 'array',
      items: {
        type: 'object',
        properties: { src: { type: 'string', maxLength: 255, pattern: '^https://' } },
        required: ['src'],
        additionalProperties: false,
      },
    },
    remotes: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: {
          type: { enum: ['streamable-http', 'sse'] },
          url: { type: 'string', pattern: '^https://[^{}]+$' },
        },
        required: ['type', 'url'],
        additionalProperties: false,
      },
    },
  },
  required: ['$schema', 'name', 'description', 'version', 'remotes'],
  additionalProperties: false,
});

interface ServerJson {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly version: string;
  readonly icons?: readonly { readonly src: string }[];
  readonly remotes: readonly { readonly url: string }[];
}

function made(changes: Changes = {}, choices: ServerJsonChoices = {}): ServerJson {
  const document = JSON.parse(serverJson(load({ ...SOLD, ...changes }), choices)) as ServerJson;
  assert.ok(isPublishable(document), JSON.stringify(isPublishable.errors));
  // Its namespace is the domain of the address, in reverse, as the registry compares them.
  const [namespace = ''] = document.name.split('/');
  assert.equal(new URL(document.remotes[0]?.url ?? '').hostname, namespace.split('.').reverse().join('.'));
  return document;
}

describe('server.json for the MCP registry', () => {
  it('has the icon of the merchant where the registry takes it', () => {
    const [most, longer] = [255, 256].map((length) => 'https://shop.example/'.padEnd(length, 'i'));
    assert.deepEqual(made({ 'merchant.iconUrl': most }).icons, [{ src: most }]);
    for (const iconUrl of [longer, 'http://shop.example/icon.svg', undefined])
      assert.equal(made({ 'merchant.iconUrl': iconUrl }).icons, undefined);
  });

  it('names the endpoint by the domain of the merchant', () => {
    const { name, title, remotes } = made();
    assert.deepEqual([name, title], ['example.shop.api/shop', 'Shop']);
    assert.deepEqual(remotes, [{ type: 'streamable-http', url: 'https://api.shop.example/mcp' }]);
    const moved = made({
      'merchant.publicBaseUrl': 'https://shop.example/agents/',
      'protocols.mcp.mountPath': '/tools',
    });
    assert.deepEqual(moved.remotes, [{ type: 'streamable-http', url: 'https://shop.example/agents/tools' }]);
    assert.equal(
      made({ 'merchant.publicBaseUrl': 'https://xn--lden-loa.xn--p1ai' }).name,
      'xn--p1ai.xn--lden-loa/shop',
    );
  });

  it('is described by its tools, as many as there is room for', () => {
    assert.equal(made().description, 'Report; paid per call with x402, no account');
    const tool = (name: string) => ({
      ...{ name, backend: { method: 'GET', path: '/tool' }, expose: ['mcp'], pricing: { type: 'free' } },
    });
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`resources.t${at}`, tool(`Tool-${at}`)]));
    assert.equal(
      made(many).description,
      'Report, Tool-0, Tool-1, Tool-2, Tool-3, Tool-4 and 25 more; paid per call with x402, no account',
    );
    assert.equal(made({ ...many, [R]: tool('é'.repeat(120)), payments: undefined }).description, '31 tools; free');
  });

  it('has the title, description and version that are chosen', () => {
    const chosen = { description: 'Prices of all cities', version: '2.0.1-beta.1' };
    assert.partialDeepStrictEqual(made({}, chosen), chosen);
    assert.equal(made({ 'merchant.name': '😀'.repeat(150) }).title, '😀'.repeat(100));
  });

  const refused: readonly (readonly [what: string, changes: Changes, choices: ServerJsonChoices, path: string])[] = [
    ['an address without TLS', { 'merchant.publicBaseUrl': 'http://shop.example' }, {}, 'merchant.publicBaseUrl'],
    ['an address of this machine', { 'merchant.publicBaseUrl': 'https://localhost' }, {}, 'merchant.publicBaseUrl'],
    ['an address below localhost', { 'merchant.publicBaseUrl': 'https://a.localhost' }, {}, 'merchant.publicBaseUrl'],
    ['an address in numbers', { 'merchant.publicBaseUrl': 'https://10.0.0.1' }, {}, 'merchant.publicBaseUrl'],
    ['no endpoint', { 'protocols.mcp.enabled': false }, {}, 'protocols.mcp.enabled'],
    ['an endpoint without tools', { [`${R}.expose`]: ['http'] }, {}, 'resources'],
    ['a long description', {}, { description: 'x'.repeat(101) }, 'description'],
    ['an empty description', {}, { description: '' }, 'description'],
    ['a range as version', {}, { version: '^1.0.0' }, 'version'],
    ['the latest version', {}, { version: 'latest' }, 'version'],
    [
      'a long domain',
      { 'merchant.id': 'm'.repeat(64), 'merchant.publicBaseUrl': `https://${'abcdefghi.'.repeat(14)}example` },
      {},
      'merchant.id',
    ],
  ];
  for (const [what, changes, choices, path] of refused)
    it(`is refused for ${what}`, () => {
      const settings = load({ ...SOLD, ...changes });
      assert.throws(
        () => serverJson(settings, choices),
        (error) => error instanceof ConfigError && error.problems.map((problem) => problem.path).join() === path,
      );
    });
});
