import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import {
  type DiscoveryExtension,
  extractDiscoveryInfo,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import type { BazaarForms, Extension } from '../../src/payments/x402/wire/types.ts';
import { ConfigError, type ConfigProblem } from '../../src/problems/problem.ts';
import { compileCatalogue, MOST_BYTES } from '../../src/resources/catalogue.ts';
import { type Changes, load, problems } from '../config/document/document.ts';

const BASE = 'https://api.shop.example';
const R = 'resources.report';
const BERLIN = { city: 'Berlin' };
const EVERYWHERE: Changes = { 'protocols.mcp.enabled': true, [`${R}.expose`]: ['http', 'origin', 'mcp'] };

/** The forms of `report`, a GET of `/reports/{city}` that wants a city. */
function listed(changes: Changes = {}, bazaar: object = { example: BERLIN }): BazaarForms {
  const config = load({ ...EVERYWHERE, [`${R}.bazaar`]: bazaar, ...changes });
  return compileCatalogue(config).bazaar.get('report') ?? assert.fail('not listed');
}

/** What the configuration, or its compilation, has against them. */
function faults(bazaar: object, changes: Changes = {}): readonly ConfigProblem[] {
  const all = { ...EVERYWHERE, [`${R}.bazaar`]: bazaar, ...changes };
  const found = problems(all);
  if (found.length > 0) return found;
  try {
    compileCatalogue(load(all));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

interface Schema {
  readonly properties: {
    readonly input: { readonly properties: Readonly<Record<string, object>>; readonly required: readonly string[] };
  };
}
interface Info {
  readonly input: Readonly<Record<string, unknown>>;
  readonly output?: unknown;
}

/** A form that the official code accepts, and what it reads of it. */
function accepted(form: Extension | undefined, url: string) {
  assert.ok(form !== undefined);
  const extension = form as unknown as DiscoveryExtension;
  assert.deepEqual(validateDiscoveryExtension(extension), { valid: true });
  assert.deepEqual(validateDiscoveryExtensionSpec(extension as unknown as Record<string, unknown>), { valid: true });
  const payload = { x402Version: 2, resource: { url }, extensions: { bazaar: extension } } as unknown as PaymentPayload;
  const found = extractDiscoveryInfo(payload, {} as PaymentRequirements) ?? assert.fail('not catalogued');
  return { ...found, info: form.info as Info, schema: form.schema as Schema };
}

describe('a resource in catalogues', () => {
  it('is how its invoke URL is called', () => {
    const { invoke } = listed();
    const { info, schema, resourceUrl } = accepted(invoke, `${BASE}/api/resources/report/invoke`);
    assert.equal(resourceUrl, `${BASE}/api/resources/report/invoke`);
    assert.deepEqual(info, { input: { type: 'http', method: 'POST', bodyType: 'json', body: BERLIN } });
    assert.deepEqual(schema.properties.input.properties['body'], {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    });
    assert.deepEqual(schema.properties.input.required, ['type', 'method', 'bodyType', 'body']);
  });

  it('is how its own address is called, under one path for all values', () => {
    const inputSchema = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' } },
      required: ['city'],
    };
    const { inPlace } = listed({ [`${R}.inputSchema`]: inputSchema }, { example: { ...BERLIN, days: 3 } });
    const { info, schema, resourceUrl } = accepted(inPlace, `${BASE}/reports/Paris`);
    assert.equal(resourceUrl, `${BASE}/reports/:city`);
    assert.deepEqual(info.input, { type: 'http', method: 'GET', queryParams: { days: 3 }, pathParams: BERLIN });
    const { queryParams, pathParams } = schema.properties.input.properties;
    const closed = { type: 'object', additionalProperties: false };
    assert.deepEqual(queryParams, { ...closed, properties: { days: { type: 'integer' } } });
    assert.deepEqual(pathParams, { ...closed, properties: { city: { type: 'string' } }, required: ['city'] });
  });

  it('has path and body apart where the method has a body', () => {
    const { inPlace } = listed({
      [`${R}.backend.method`]: 'POST',
      [`${R}.inputSchema.properties.days`]: { type: 'integer' },
    });
    const { info } = accepted(inPlace, `${BASE}/reports/Paris`);
    assert.deepEqual(info.input, { type: 'http', method: 'POST', bodyType: 'json', body: {}, pathParams: BERLIN });
  });

  it('has no template for an address without parameters, and all of the path below a proxy', () => {
    const plain = { [`${R}.backend.path`]: '/report', 'merchant.publicBaseUrl': `${BASE}/shop` };
    const { routeTemplate } = listed(plain).inPlace ?? assert.fail();
    assert.equal(routeTemplate, undefined);
    const below = listed({ 'merchant.publicBaseUrl': `${BASE}/shop` }).inPlace;
    assert.equal(accepted(below, `${BASE}/shop/reports/Paris`).resourceUrl, `${BASE}/shop/reports/:city`);
  });

  it('is its tool, of the endpoint that tools have', () => {
    const { tool } = listed();
    assert.equal(tool?.url, `${BASE}/mcp`);
    const found = accepted(tool?.extension, tool?.url ?? '');
    assert.equal('toolName' in found && found.toolName, 'report');
    const { inputSchema, ...rest } = found.info.input;
    assert.deepEqual(rest, { type: 'mcp', toolName: 'report', example: BERLIN });
    assert.deepEqual((inputSchema as { required: unknown }).required, ['city']);
  });

  it('has the forms of the channels alone that sell it', () => {
    const { invoke, inPlace, tool } = listed({ [`${R}.expose`]: ['http', 'a2a'], 'protocols.a2a.enabled': true });
    assert.deepEqual([invoke === undefined, inPlace, tool], [false, undefined, undefined]);
  });

  it('shows an answer in every form, as JSON or as text', () => {
    const output = { city: 'Berlin', price: '12.50' };
    const { invoke, inPlace, tool } = listed({}, { example: BERLIN, output });
    for (const form of [invoke, inPlace, tool?.extension])
      assert.deepEqual(accepted(form, `${BASE}/x`).info.output, { type: 'json', example: output });
    const csv = listed({ [`${R}.mimeType`]: 'text/csv' }, { example: BERLIN, output: 'city;price' }).invoke;
    assert.deepEqual(accepted(csv, `${BASE}/x`).info.output, { type: 'text', example: 'city;price' });
  });

  it('has the schema of its answer, without an answer too, as far as there is room', () => {
    const answerOf = (form: Extension | undefined): unknown => {
      const { info, schema } = accepted(form, `${BASE}/x`);
      assert.deepEqual(info.output, { type: 'json' });
      return (schema.properties as unknown as { output: { properties: { example: unknown } } }).output.properties
        .example;
    };
    const outputSchema = { type: 'object', properties: { price: { type: 'string' } } };
    assert.deepEqual(answerOf(listed({ [`${R}.outputSchema`]: outputSchema }).invoke), outputSchema);
    const large = { type: 'object', properties: { price: { type: 'string', description: 'x'.repeat(MOST_BYTES) } } };
    const referring = {
      type: 'object',
      properties: { price: { $ref: '#/$defs/p' } },
      $defs: { p: { type: 'string' } },
    };
    for (const schema of [large, referring])
      assert.deepEqual(answerOf(listed({ [`${R}.outputSchema`]: schema }).invoke), {});
  });

  it('says of its resource what the 402 says', () => {
    assert.deepEqual(listed().about, { mimeType: 'application/json' });
    const { about } = listed({ [`${R}.description`]: 'Prices of a city', [`${R}.mimeType`]: 'text/csv' });
    assert.deepEqual(about, { description: 'Prices of a city', mimeType: 'text/csv' });
  });

  it('takes any object where a schema refers to itself, which means something else within another', () => {
    const inputSchema = {
      type: 'object',
      $defs: { city: { type: 'string' } },
      properties: { city: { $ref: '#/$defs/city' } },
      required: ['city'],
    };
    const { invoke, tool } = listed({ [`${R}.inputSchema`]: inputSchema, [`${R}.expose`]: ['http', 'mcp'] });
    assert.deepEqual(accepted(invoke, `${BASE}/x`).schema.properties.input.properties['body'], { type: 'object' });
    // As a value it is whole.
    assert.deepEqual((accepted(tool?.extension, `${BASE}/x`).info.input['inputSchema'] as typeof inputSchema).$defs, {
      city: { type: 'string' },
    });
  });

  it('takes any object where the schema is too large for a 402', () => {
    const described = { type: 'string', description: 'x'.repeat(MOST_BYTES) };
    const { invoke, inPlace, tool } = listed({ [`${R}.inputSchema.properties.city`]: described });
    for (const form of [invoke, inPlace, tool?.extension]) {
      accepted(form, `${BASE}/reports/Paris`);
      assert.ok(Buffer.byteLength(JSON.stringify(form)) <= MOST_BYTES);
    }
    assert.deepEqual(accepted(tool?.extension, `${BASE}/x`).info.input['inputSchema'], { type: 'object' });
  });

  it('is absent unless it is asked for', () => {
    assert.equal(compileCatalogue(load({})).bazaar.size, 0);
  });
});

describe('a resource in catalogues is refused', () => {
  const rows: readonly (readonly [what: string, bazaar: object, changes: Changes, path: string, message: RegExp])[] = [
    ['without an example', {}, {}, `${R}.bazaar.example`, /is missing/],
    ['with an unknown key', { example: BERLIN, title: 'x' }, {}, `${R}.bazaar.title`, /not a known key/],
    ['with an example that lacks a member', { example: {} }, {}, `${R}.bazaar.example.city`, /is required/],
    ['with a member of another type', { example: { city: 7 } }, {}, `${R}.bazaar.example.city`, /must be string/],
    [
      'with a member that is none',
      { example: { ...BERLIN, x: 1 } },
      {},
      `${R}.bazaar.example.x`,
      /not a property of this input/,
    ],
    ['with a value that no path can hold', { example: { city: '..' } }, {}, `${R}.bazaar.example.city`, /path/],
    [
      'with an answer that does not fit',
      { example: BERLIN, output: { price: 1 } },
      { [`${R}.outputSchema`]: { type: 'object', properties: { price: { type: 'string' } } } },
      `${R}.bazaar.output`,
      /must fit outputSchema/,
    ],
    [
      'with too much in it',
      { example: BERLIN, output: 'x'.repeat(MOST_BYTES) },
      {},
      `${R}.bazaar`,
      /makes \d+ bytes of each challenge, of which there may be 1536: shorten example and output/,
    ],
    [
      'for what is free',
      { example: BERLIN },
      { [`${R}.pricing`]: { type: 'free' } },
      `${R}.bazaar`,
      /for resources with a price/,
    ],
    [
      'for what no listed channel sells',
      { example: BERLIN },
      { 'protocols.a2a.enabled': true, [`${R}.expose`]: ['a2a'] },
      `${R}.bazaar`,
      /needs one of http, origin, mcp in expose/,
    ],
  ];
  for (const [what, bazaar, changes, path, message] of rows)
    it(what, () => {
      const [problem, ...more] = faults(bazaar, changes);
      assert.deepEqual([problem?.path, more], [path, []]);
      assert.match(problem?.message ?? '', message);
    });
});
