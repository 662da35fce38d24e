import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { toolsListResult } from '../../../src/adapters/mcp/tools.ts';
import type { JsonObject } from '../../../src/json/types.ts';
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
  readonly annotations: Readonly<Record<string, unknown>>;
  readonly _meta: Readonly<Record<string, unknown>>;
}

const listed = (resource: ListedResource, era: 'legacy' | 'modern' = 'modern'): Tool =>
  (JSON.parse(toolsListResult([resource], era, SERVER)) as { tools: [Tool] }).tools[0];

describe('resources as tools', () => {
  it('name is the id, title the name, and without a description the name stands in', () => {
    const { name, title, description } = listed(FREE);
    assert.deepEqual([name, title, description], ['cities', 'Cities', 'Cities']);
  });

  it('a price is in the description, in _meta, and for dollar coins where the Cloudflare client looks', () => {
    const { description, _meta } = listed(PAID);
    assert.match(description, /^Prices of one city\. Costs 0\.01 USDC per call, paid with x402/);
    assert.deepEqual(_meta, {
      'agent-commerce/pricing': { type: 'fixed', amount: '0.01', currency: 'USDC' },
      'agents-x402/paymentRequired': true,
      'agents-x402/priceUSD': '0.01',
    });
    const other = listed({ ...PAID, pricing: { type: 'fixed', amount: '2', currency: 'EURC' } });
    assert.equal('agents-x402/priceUSD' in other._meta, false);
    assert.deepEqual(listed(FREE)._meta, { 'agent-commerce/pricing': { type: 'free' } });
  });

  it('_payment is declared for paid tools, because hosts validate, and never required', () => {
    const { properties, required } = listed(PAID).inputSchema;
    assert.deepEqual(Object.keys(properties), ['city', '_payment']);
    assert.deepEqual(required, ['city']);
    assert.deepEqual(listed(FREE).inputSchema, FREE.inputSchema);
  });

  it('a host that validates can send _payment, whatever the schema says of all properties', () => {
    const schemas: Readonly<Record<string, JsonObject>> = {
      'as many as there are': { maxProperties: 1 },
      'named in one way': { propertyNames: { pattern: '^[a-z]+$' } },
      'closed beside a composition': { additionalProperties: false, allOf: [{ required: ['city'] }] },
    };
    for (const [what, rules] of Object.entries(schemas)) {
      const { inputSchema } = listed({ ...PAID, inputSchema: { ...PAID.inputSchema, ...rules } });
      const validate = new Ajv2020({ strict: false }).compile(inputSchema);
      assert.ok(validate({ city: 'Berlin' }) && validate({ city: 'Berlin', _payment: 'x' }), what);
      assert.ok(!validate({ city: 7 }), what);
    }
  });

  it('_payment is not declared where a part of the schema would refuse it', () => {
    const closed = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false };
    const inputSchema: JsonObject = { type: 'object', $defs: { closed }, allOf: [{ $ref: '#/$defs/closed' }] };
    assert.deepEqual(listed({ ...PAID, inputSchema }).inputSchema, inputSchema);
  });

  for (const [method, hints] of [
    ['GET', { readOnlyHint: true, idempotentHint: true }],
    ['POST', { readOnlyHint: false, destructiveHint: false, idempotentHint: false }],
    ['PUT', { readOnlyHint: false, destructiveHint: false, idempotentHint: true }],
    ['DELETE', { readOnlyHint: false, destructiveHint: true, idempotentHint: false }],
  ] as const)
    it(`a free ${method}: ${JSON.stringify(hints)}`, () => {
      assert.deepEqual(listed({ ...FREE, method }).annotations, { title: 'Cities', ...hints, openWorldHint: true });
    });

  it('a paid tool is never read-only, so that hosts ask before it spends', () => {
    for (const method of ['GET', 'PUT', 'POST'] as const)
      assert.deepEqual(listed({ ...PAID, method }).annotations, {
        title: 'Report',
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: true,
      });
  });

  it('an output schema is for the modern era alone', () => {
    const outputSchema = { type: 'array' };
    assert.deepEqual(listed({ ...FREE, outputSchema }).outputSchema, outputSchema);
    assert.equal(listed({ ...FREE, outputSchema }, 'legacy').outputSchema, undefined);
  });

  it('the list says how long it holds, and for whom, in the modern era', () => {
    const { tools, ...rest } = JSON.parse(toolsListResult([FREE, PAID], 'modern', SERVER)) as { tools: Tool[] };
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
    assert.deepEqual(Object.keys(JSON.parse(toolsListResult([FREE], 'legacy', SERVER)) as object), ['tools']);
  });
});
