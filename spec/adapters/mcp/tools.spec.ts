import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { toolPages } from '../../../src/adapters/mcp/tools.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import type { ListedResource } from '../../../src/resources/listing.ts';

const SERVER = { name: 'shop', title: 'Shop', version: '1.0.0' };
const FREE: ListedResource = {
  id: 'cities',
  name: 'Cities',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  method: 'GET',
  pricing: { type: 'free' },
  exposedVia: ['mcp'],
  paymentMethods: [],
};
const PAID: ListedResource = {
  ...FREE,
  id: 'report',
  name: 'Report',
  description: 'Prices of one city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
};

interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: { readonly properties: object; readonly required?: readonly string[] };
  readonly outputSchema?: object;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

const page = (era: 'legacy' | 'modern', ...resources: readonly ListedResource[]) =>
  JSON.parse(String(toolPages(resources, SERVER)[era].at(undefined))) as { tools: [Tool] };
const listed = (resource: ListedResource, era: 'legacy' | 'modern' = 'modern'): Tool => page(era, resource).tools[0];

describe('resources as tools', () => {
  it('have the id as name, the name as title, and the name for a missing description', () => {
    const { name, title, description } = listed(FREE);
    assert.deepEqual([name, title, description], ['cities', 'Cities', 'Cities']);
  });

  it('have their price in the description, in _meta, and for dollar coins in members of Cloudflare', () => {
    const { description, _meta } = listed(PAID);
    assert.equal(description, 'Prices of one city. Costs 0.01 USDC per call (x402).');
    assert.deepEqual(_meta, { 'agents-x402/paymentRequired': true, 'agents-x402/priceUSD': '0.01' });
    const other = listed({ ...PAID, pricing: { type: 'fixed', amount: '2', currency: 'EURC' } });
    assert.deepEqual(other._meta, { 'agents-x402/paymentRequired': true });
    assert.equal(listed(FREE)._meta, undefined);
  });

  it('have no single price in dollars where it follows the input', () => {
    const by = { quote: { min: '0.01', max: '2' } };
    const { description, _meta } = listed({
      ...PAID,
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC', by },
    });
    assert.equal(description, 'Prices of one city. Costs 0.01 to 2 USDC, quoted for each input (x402).');
    assert.deepEqual(_meta, { 'agents-x402/paymentRequired': true });
  });

  it('add few bytes to what the merchant wrote', () => {
    const { id, name, description, inputSchema } = PAID;
    const written = JSON.stringify({ name: id, title: name, description, inputSchema }).length;
    const added = JSON.stringify(listed(PAID)).length - written;
    assert.ok(added <= 260, `${added}`);
  });

  it('declare _payment when paid, and never require it', () => {
    const { properties, required } = listed(PAID).inputSchema;
    assert.deepEqual(Object.keys(properties), ['city', '_payment']);
    assert.deepEqual(required, ['city']);
    assert.deepEqual(listed(FREE).inputSchema, FREE.inputSchema);
  });

  it('allow _payment beside every rule about all properties', () => {
    const schemas: Readonly<Record<string, JsonObject>> = {
      'a number of them': { maxProperties: 1 },
      'a pattern of names': { propertyNames: { pattern: '^[a-z]+$' } },
      'closed beside a composition': { additionalProperties: false, allOf: [{ required: ['city'] }] },
    };
    for (const [what, rules] of Object.entries(schemas)) {
      const { inputSchema } = listed({ ...PAID, inputSchema: { ...PAID.inputSchema, ...rules } });
      const validate = new Ajv2020({ strict: false }).compile(inputSchema);
      assert.ok(validate({ city: 'Berlin' }) && validate({ city: 'Berlin', _payment: 'x' }), what);
      assert.ok(!validate({ city: 7 }), what);
    }
  });

  it('do not declare _payment where a part of the schema would refuse it', () => {
    const closed = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false };
    const inputSchema: JsonObject = { type: 'object', $defs: { closed }, allOf: [{ $ref: '#/$defs/closed' }] };
    assert.deepEqual(listed({ ...PAID, inputSchema }).inputSchema, inputSchema);
  });

  /** What MCP assumes where a hint is absent. */
  const assumed = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };

  it('have the hints in which their method differs from what MCP assumes', () => {
    for (const [method, hints] of [
      ['GET', { readOnlyHint: true }],
      ['POST', { destructiveHint: false }],
      ['PUT', { destructiveHint: false, idempotentHint: true }],
      ['DELETE', {}],
    ] as const) {
      const { annotations = {} } = listed({ ...FREE, method });
      assert.deepEqual({ ...assumed, ...annotations }, { ...assumed, ...hints });
      assert.deepEqual(annotations, hints);
    }
  });

  it('are never read-only when paid', () => {
    for (const method of ['GET', 'PUT', 'POST'] as const)
      assert.deepEqual(listed({ ...PAID, method }).annotations, { destructiveHint: false });
    assert.equal(listed({ ...PAID, method: 'DELETE' }).annotations, undefined);
  });

  it('have an output schema in the modern era alone', () => {
    const outputSchema = { type: 'array' };
    assert.deepEqual(listed({ ...FREE, outputSchema }).outputSchema, outputSchema);
    assert.equal(listed({ ...FREE, outputSchema }, 'legacy').outputSchema, undefined);
  });

  it('come in a list that may be cached in the modern era', () => {
    const { tools, ...rest } = page('modern', FREE, PAID);
    assert.deepEqual(rest, {
      resultType: 'complete',
      ttlMs: 300_000,
      cacheScope: 'public',
      _meta: { 'io.modelcontextprotocol/serverInfo': SERVER },
    });
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['cities', 'report'],
    );
    assert.deepEqual(Object.keys(page('legacy', FREE)), ['tools']);
  });
});

describe('a tool that needs a mandate', () => {
  const authorization = { required: ['ap2'] };
  const inputSchema = { ...PAID.inputSchema, additionalProperties: false, required: [] };
  const FREE_GUARDED = { ...FREE, inputSchema, authorization };
  const PAID_GUARDED = { ...PAID, inputSchema, authorization };

  it('states it in its description', () => {
    assert.equal(listed(FREE_GUARDED).description, 'Cities. Needs an AP2 mandate.');
    const paid = 'Prices of one city. Costs 0.01 USDC per call (x402). Needs an AP2 mandate.';
    assert.equal(listed(PAID_GUARDED).description, paid);
  });

  it('declares _authorization, free or paid, and no other tool does', () => {
    for (const [resource, names] of [
      [{ ...FREE, inputSchema }, ['city']],
      [FREE_GUARDED, ['city', '_authorization']],
      [PAID_GUARDED, ['city', '_payment', '_authorization']],
    ] as const) {
      const schema = listed(resource).inputSchema;
      assert.deepEqual(Object.keys(schema.properties), names);
      const fits = new Ajv2020({ strict: false }).compile(schema);
      assert.equal(fits({ city: 'Berlin', _authorization: 'x' }), names.length > 1);
      assert.ok(fits({ city: 'Berlin' }), 'it is never required');
    }
  });

  it('allows both members where a schema counts', () => {
    const counting = { ...inputSchema, maxProperties: 1, propertyNames: { pattern: '^[a-z]+$' } };
    const schema = listed({ ...PAID_GUARDED, inputSchema: counting }).inputSchema;
    assert.ok(new Ajv2020({ strict: false }).compile(schema)({ city: 'Berlin', _payment: 'x', _authorization: 'y' }));
  });
});

interface Page {
  readonly tools: readonly { readonly name: string }[];
  readonly nextCursor?: string;
}

function resources(count: number, description = 'One of many'): readonly ListedResource[] {
  return Array.from({ length: count }, (_, index) => ({
    ...FREE,
    ...{ id: `tool-${index}`, name: `Tool ${index}`, description },
  }));
}

function pagesOf(listed: readonly ListedResource[]): readonly Page[] {
  const pages = toolPages(listed, SERVER).modern;
  const found: Page[] = [];
  let cursor: string | undefined;
  do {
    const page: Page = JSON.parse(pages.at(cursor)?.toString() ?? '') as Page;
    found.push(page);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

describe('the pages of tools/list', () => {
  it('are one without a cursor for an ordinary merchant, also for one without tools', () => {
    for (const count of [0, 1, 500]) {
      const [only, ...more] = pagesOf(resources(count));
      assert.deepEqual([only?.tools.length, only?.nextCursor, more.length], [count, undefined, 0]);
    }
  });

  it('have every tool once, in the order of the configuration', () => {
    const pages = pagesOf(resources(1_201));
    assert.deepEqual(
      pages.map(({ tools }) => tools.length),
      [500, 500, 201],
    );
    assert.deepEqual(
      pages.flatMap(({ tools }) => tools.map(({ name }) => name)),
      resources(1_201).map(({ id }) => id),
    );
  });

  it('have fewer tools where these are long, and at least one', () => {
    const long = pagesOf(resources(60, 'x'.repeat(20_000)));
    assert.ok(long.length > 1 && long.every(({ tools }) => tools.length <= 27), `${long.length}`);
    assert.equal(pagesOf(resources(3, 'x'.repeat(600_000))).length, 3);
  });

  it('have cursors that every process with the same tools understands, and none with others', () => {
    const listed = resources(501);
    const [first] = pagesOf(listed);
    const cursor = first?.nextCursor;
    assert.ok(toolPages(listed, SERVER).legacy.at(cursor) !== undefined);
    assert.equal(toolPages(listed.slice(1), SERVER).modern.at(cursor), undefined);
    const wrong = ['', 'x', '0', '1', '500', cursor?.replace(/^500/, '0'), cursor?.replace(/^500/, '1'), 500, null, {}];
    for (const other of wrong) assert.equal(toolPages(listed, SERVER).modern.at(other ?? null), undefined, `${other}`);
  });
});
