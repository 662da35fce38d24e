import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configWarnings } from '../../../src/config/warnings.ts';
import { NO_CHAIN } from '../../support/config.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { answerJson, type HttpServer, serveHttp } from '../../support/http-server.ts';
import { callTool, ENABLED, postMcp } from './post.ts';

const text = { type: 'string' };
const list = { type: 'array', items: text };
const free = { pricing: { type: 'free' }, expose: ['http', 'mcp'] };
const resource = (method: string, inputSchema?: object, more: object = {}) => ({
  ...{ name: 'It', backend: { method, path: '/it' }, ...free, ...more },
  ...(inputSchema && { inputSchema }),
});
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

const LONG = 'a'.repeat(70);
const RESOURCES = {
  'reports.v1': resource('GET'),
  'reports.v2': resource('GET'),
  reports_v2: resource('GET'),
  [LONG]: resource('GET'),
  calls: resource(
    'GET',
    object({
      'StartTime<': text,
      'StartTime>': text,
      'filter[status]': text,
      'ids[]': list,
      $top: { type: 'integer' },
    }),
  ),
  twins: resource('GET', object({ 'a[]': text, a: text, a$: text, [LONG]: text }, { required: ['a[]'] })),
  deep: resource(
    'POST',
    object(
      {
        rows: { type: 'array', items: { $ref: '#/$defs/row' } },
        free: { type: 'object', additionalProperties: true },
      },
      { $defs: { row: object({ 'x y': text }, { required: ['x y'] }) } },
    ),
  ),
  either: resource('POST', object({ a: text, b: text }, { anyOf: [{ required: ['a'] }, { required: ['b'] }] })),
  one: resource('POST', {
    type: 'object',
    oneOf: [
      object({ kind: { const: 'cat' }, meow: { type: 'boolean' } }, { required: ['kind'] }),
      object({ kind: { const: 'dog' } }, { required: ['kind'] }),
    ],
  }),
  both: resource('POST', {
    type: 'object',
    $defs: { base: object({ 'id[]': text }) },
    allOf: [{ $ref: '#/$defs/base' }],
    not: { required: ['z'] },
    properties: { z: text },
  }),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  when: resource('POST', object({ a: text, b: text }, { if: { required: ['a'] }, then: { required: ['b'] } })),
} as const;

interface Tool {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>> & { readonly properties: Readonly<Record<string, unknown>> };
}

describe('tools for the APIs of models', () => {
  let backend: HttpServer;
  let gateway: TestGateway;
  let tools: readonly Tool[];
  before(async () => {
    backend = await serveHttp(({ request, response, body }) =>
      answerJson(response, 200, { url: request.url, body: body.toString() }),
    );
    gateway = await openGateway({
      ...{ backendUrl: backend.url, chain: NO_CHAIN, facilitator: { mode: 'local' } },
      overrides: { ...ENABLED, resources: { ...RESOURCES } },
    });
    const { text: answer } = await postMcp(gateway.url, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const { result } = JSON.parse(answer) as { result: { tools: readonly Tool[] } };
    // The sample resources come first.
    tools = result.tools.slice(-Object.keys(RESOURCES).length);
  });
  after(async () => {
    await gateway?.close();
    await backend?.stop();
  });

  it('have names of 64 letters, digits, _ and -, each once', () => {
    const names = tools.map(({ name }) => name);
    assert.ok(
      names.every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name)),
      names.join(),
    );
    assert.equal(new Set(names).size, Object.keys(RESOURCES).length);
    assert.deepEqual([names[0], names[2]], ['reports_v1', 'reports_v2']);
    assert.match(names[1] ?? '', /^reports_v2_[0-9a-f]{6}$/);
  });

  it('have arguments of 64 letters, digits, _, . and - at every depth', () => {
    const keys = (node: unknown): readonly string[] =>
      typeof node !== 'object' || node === null
        ? []
        : Object.entries(node).flatMap(([keyword, value]) => [
            ...(keyword === 'properties' ? Object.keys(value as object) : []),
            ...keys(value),
          ]);
    const found = tools.flatMap(({ inputSchema }) => keys(inputSchema));
    assert.deepEqual(
      found.filter((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key)),
      [],
    );
    const calls = tools.find(({ name }) => name === 'calls');
    assert.deepEqual(Object.keys(calls?.inputSchema.properties ?? {}), [
      ...['StartTime_lt', 'StartTime_gt', 'filter_status', 'ids', 'top'],
    ]);
    assert.deepEqual(calls?.inputSchema.properties['top'], { title: '$top', type: 'integer' });
  });

  it('have no combinator on top, and the properties of all branches', () => {
    const on = tools.flatMap(({ inputSchema }) => Object.keys(inputSchema));
    assert.deepEqual(
      on.filter((keyword) => /^(?:allOf|anyOf|oneOf|not|enum|if|then|else|\$ref)$/.test(keyword)),
      [],
    );
    const one = tools.find(({ name }) => name === 'one');
    assert.deepEqual(one?.inputSchema.properties, {
      kind: { anyOf: [{ const: 'cat' }, { const: 'dog' }] },
      meow: { type: 'boolean' },
    });
    assert.match(
      String(tools.find(({ name }) => name === 'either')?.inputSchema['description']),
      /Must also fit .*"anyOf"/,
    );
  });

  const CALLS: readonly (readonly [string, object, string])[] = [
    ['reports_v1', {}, '/it'],
    ['reports.v1', {}, '/it'],
    ['reports_v2', {}, '/it'],
    [LONG, {}, '/it'],
    ['calls', { StartTime_lt: 'x', ids: ['a', 'b'] }, '/it?StartTime%3C=x&ids%5B%5D=a&ids%5B%5D=b'],
    ['calls', { 'StartTime<': 'x', $top: 3 }, '/it?StartTime%3C=x&%24top=3'],
    ['deep', { rows: [{ x_y: 'x' }], free: { x_y: 1 } }, '{"rows":[{"x y":"x"}],"free":{"x_y":1}}'],
    ['deep', { rows: [{ 'x y': 'x' }] }, '{"rows":[{"x y":"x"}]}'],
    ['either', { a: 'x' }, '{"a":"x"}'],
    ['one', { kind: 'cat', meow: true }, '{"kind":"cat","meow":true}'],
    ['both', { id: 'x' }, '{"id[]":"x"}'],
    ['when', { a: 'x', b: 'y' }, '{"a":"x","b":"y"}'],
  ];
  it('send their arguments under the names of the merchant, by either name of the tool', async () => {
    for (const [name, input, sent] of CALLS)
      for (const era of ['legacy', 'modern'] as const) {
        const { structuredContent, isError } = await callTool(gateway.url, name, input, { era });
        assert.equal(isError, undefined, JSON.stringify(structuredContent));
        const { url, body } = structuredContent as { url: string; body: string };
        assert.equal(body === '' ? url : body, sent, `${name} ${JSON.stringify(input)}`);
      }
  });

  it('hold their arguments to the whole schema of the merchant', async () => {
    for (const [name, input] of [
      ['either', {}],
      ['one', { kind: 'bird' }],
      ['both', { z: 'x' }],
      ['when', { a: 'x' }],
      ['calls', { 'ids[]': ['a'], ids: ['b'] }],
      ['deep', { rows: [{}] }],
    ] as const) {
      const { structuredContent } = await callTool(gateway.url, name, input);
      assert.equal(structuredContent?.['code'], 'INPUT_INVALID', name);
    }
  });

  it('differ from their resources only where the configuration is warned of it', () => {
    const warnings = configWarnings(gateway.config).filter((warning) => warning.startsWith('resources'));
    const about = (id: string) => warnings.filter((warning) => warning.includes(id)).join('\n');
    assert.match(about('reports.v1'), /its MCP tool is called reports_v1,/);
    assert.match(about('calls'), /filter\[status\] is filter_status, ids\[\] is ids/);
    assert.match(about('either'), /has no anyOf on the top level/);
    assert.equal(about('reports_v2,'), '');
    const clean = { ...gateway.config, resources: gateway.config.resources.filter(({ id }) => id === 'reports_v2') };
    assert.deepEqual(
      configWarnings(clean).filter((warning) => warning.startsWith('resources')),
      [],
    );
  });
});
