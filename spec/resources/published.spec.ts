import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { validate as discoveryFaults } from 'mppx/discovery';
import { indexPage } from '../../src/app/mount-routes.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import {
  indexDocument,
  introductionOf,
  llmsDocument,
  MOST_DESCRIBED,
  openApiDocument,
  x402Document,
} from '../../src/resources/published.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { AMOY, type Changes, EURO, load, MAINNET } from '../config/document/document.ts';

const R = 'resources';
const BASE = 'https://api.shop.example';
const TEXT = { type: 'string', maxLength: 64 };

interface Operation {
  readonly operationId: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: object;
  }[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: object; readonly example?: object }>>;
  };
  readonly responses: Readonly<Record<string, object>>;
  readonly 'x-payment-info'?: object;
}

interface Document {
  readonly info: { readonly title: string };
  readonly servers: readonly object[];
  readonly 'x-resources-offered'?: number;
  readonly 'x-agentcash-guidance'?: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** The document of a configuration, which the validators of OpenAPI and of mppx accept. */
async function described(changes: Changes): Promise<Document> {
  const config = load(changes);
  const text = Buffer.from(openApiDocument(config, compileCatalogue(config).listed).bytes).toString();
  const { valid, errors } = await new Validator().validate(JSON.parse(text));
  assert.ok(valid, JSON.stringify(errors));
  assert.deepEqual(discoveryFaults(JSON.parse(text)), []);
  return JSON.parse(text) as Document;
}

function resource(more: object): object {
  return { name: 'Thing', backend: { method: 'POST', path: '/things' }, pricing: { type: 'free' }, ...more };
}

describe('the OpenAPI document', () => {
  it('names the merchant, its address, and where models read on', async () => {
    const document = await described({});
    assert.equal(document.info.title, 'Shop');
    assert.deepEqual(document.servers, [{ url: BASE }]);
    assert.deepEqual(document['x-agentcash-guidance'], { llmsTxtUrl: `${BASE}/llms.txt` });
    assert.equal((await described({ publish: ['openapi'] }))['x-agentcash-guidance'], undefined);
  });

  it('has a priced resource at its invoke path, with its price and its input as the body', async () => {
    const { paths } = await described({ ...MAINNET });
    const { post } = paths['/api/resources/report/invoke'] ?? assert.fail();
    assert.deepEqual([post?.operationId, post?.requestBody?.required], ['report', true]);
    assert.deepEqual(post?.requestBody?.content['application/json']?.schema, {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    });
    assert.deepEqual(post?.['x-payment-info'], {
      price: { mode: 'fixed', currency: 'USD', amount: '0.01' },
      protocols: [{ x402: {} }],
    });
    assert.ok(post !== undefined && '402' in post.responses);
  });

  it('has the currency of the entry that the price is in', async () => {
    const { paths } = await described({ 'payments.x402': [EURO, AMOY] });
    const { price } = (paths['/api/resources/report/invoke']?.['post']?.['x-payment-info'] ?? {}) as { price: object };
    assert.deepEqual(price, { mode: 'fixed', currency: 'USD', amount: '0.01' });
  });

  it('has the tags of a resource at its operation', async () => {
    const { paths } = await described({ [`${R}.report.tags`]: ['weather'], [`${R}.thing`]: resource({}) });
    assert.deepEqual(paths['/api/resources/report/invoke']?.['post']?.tags, ['weather']);
    assert.ok(!('tags' in (paths['/api/resources/thing/invoke']?.['post'] ?? assert.fail())));
  });

  it('has a free one without a price, and no input that it must have', async () => {
    const { paths } = await described({ [`${R}.thing`]: resource({}) });
    const { post } = paths['/api/resources/thing/invoke'] ?? assert.fail();
    assert.deepEqual([post?.['x-payment-info'], post?.requestBody?.required], [undefined, false]);
    assert.ok(post !== undefined && !('402' in post.responses));
  });

  it('names the token as prices do where it is not known', async () => {
    const local = {
      'payments.x402.network': 'eip155:31337',
      'payments.x402.rpcUrl': 'http://127.0.0.1:8545',
      'payments.x402.facilitator.url': 'http://127.0.0.1:4020',
    };
    const { paths } = await described(local);
    assert.partialDeepStrictEqual(paths['/api/resources/report/invoke']?.['post']?.['x-payment-info'], {
      price: { currency: 'USDC' },
    });
  });

  it('has in place what goes into path, fixed query and query as parameters', async () => {
    const { paths } = await described({
      [`${R}.report.expose`]: ['http', 'origin'],
      [`${R}.report.backend.path`]: '/reports/{city}?format=json',
      [`${R}.report.inputSchema.properties`]: {
        city: TEXT,
        days: { type: 'array', items: { type: 'integer' }, maxItems: 3 },
      },
      [`${R}.report.bazaar`]: { example: { city: 'Bern', days: [1, 2] } },
    });
    const { get } = paths['/reports/{city}'] ?? assert.fail();
    assert.deepEqual(get?.parameters, [
      { name: 'city', in: 'path', required: true, schema: TEXT, example: 'Bern' },
      { name: 'format', in: 'query', required: true, schema: { const: 'json' } },
      {
        name: 'days',
        in: 'query',
        required: false,
        schema: { type: 'array', items: { type: 'integer' }, maxItems: 3 },
        example: [1, 2],
      },
    ]);
    assert.deepEqual([get?.operationId, get?.requestBody], ['report.origin', undefined]);
    const { post } = paths['/api/resources/report/invoke'] ?? assert.fail();
    assert.deepEqual(post?.requestBody?.content['application/json']?.example, { city: 'Bern', days: [1, 2] });
  });

  it('has in place what goes into the body without what the path holds', async () => {
    const inputSchema = { type: 'object', properties: { id: TEXT, note: TEXT }, required: ['id', 'note'] };
    const { paths } = await described({
      [`${R}.thing`]: resource({
        ...{ inputSchema, expose: ['origin'], backend: { method: 'PUT', path: '/things/{id}' } },
        ...{ pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' }, payments: ['x402'] },
        bazaar: { example: { id: '7', note: 'new' } },
      }),
    });
    const { put } = paths['/things/{id}'] ?? assert.fail();
    const { schema, example } = put?.requestBody?.content['application/json'] ?? assert.fail();
    assert.partialDeepStrictEqual(schema, { required: ['note'], properties: { note: TEXT } });
    assert.deepEqual(example, { note: 'new' });
    assert.equal(put?.operationId, 'thing');
    assert.equal(paths['/api/resources/thing/invoke'], undefined);
  });

  it('has one path for operations whose parameters have other names', async () => {
    const inputSchema = { type: 'object', properties: { town: TEXT }, required: ['town'] };
    const { paths } = await described({
      [`${R}.report.expose`]: ['origin'],
      [`${R}.thing`]: resource({
        inputSchema,
        expose: ['origin'],
        backend: { method: 'DELETE', path: '/reports/{town}' },
      }),
    });
    assert.deepEqual(Object.keys(paths), ['/reports/{city}']);
    assert.deepEqual(paths['/reports/{city}']?.['delete']?.parameters?.[0], {
      name: 'city',
      in: 'path',
      required: true,
      schema: TEXT,
    });
  });

  it('gives a schema that refers to its own root a name of its own', async () => {
    const inputSchema = { type: 'object', properties: { a: { $ref: '#/$defs/text' } }, $defs: { text: TEXT } };
    const { paths } = await described({ [`${R}.thing`]: resource({ inputSchema }) });
    const { schema } =
      paths['/api/resources/thing/invoke']?.['post']?.requestBody?.content['application/json'] ?? assert.fail();
    assert.partialDeepStrictEqual(schema, { $id: `${BASE}/api/resources/thing` });
  });

  it('leaves out what is sold on other channels only', async () => {
    const { paths } = await described({ 'protocols.mcp.enabled': true, [`${R}.thing`]: resource({ expose: ['mcp'] }) });
    assert.deepEqual(Object.keys(paths), ['/api/resources/report/invoke']);
  });

  it('has the first resources, and says how many there are', async () => {
    const many = Object.fromEntries(
      Array.from({ length: MOST_DESCRIBED }, (_, at) => [
        `${R}.r${at}`,
        resource({ backend: { method: 'POST', path: `/r/${at}` } }),
      ]),
    );
    const document = await described(many);
    assert.equal(Object.keys(document.paths).length, MOST_DESCRIBED);
    assert.equal(document['x-resources-offered'], MOST_DESCRIBED + 1);
  });
});

function made(changes: Changes = {}) {
  const config = load(changes);
  const introduction = introductionOf(config, compileCatalogue(config).listed);
  return {
    llms: textOf(llmsDocument(introduction)),
    x402: JSON.parse(textOf(x402Document(introduction))) as unknown,
    index: JSON.parse(textOf(indexDocument(config))) as unknown,
    page: indexPage(introduction),
  };
}

function textOf({ bytes }: StaticDocument): string {
  return Buffer.from(bytes).toString();
}

describe('the documents that introduce what is sold', () => {
  it('tell a model how to call, what there is, its price and where to read on', () => {
    const { llms } = made({ 'protocols.mcp.enabled': true });
    assert.match(llms, /^# Shop\n\n> 1 operations /);
    assert.ok(llms.includes(`- [Report](${BASE}/api/resources/report/invoke): Report. Costs 0.01 USDC per call.\n`));
    for (const path of ['/api/resources', '/.well-known/agent-commerce', '/mcp', '/openapi.json'])
      assert.ok(llms.includes(`(${BASE}${path})\n`), path);
  });

  it('tell a catalogue what can be asked as it stands there, in place where it is sold nowhere else', () => {
    assert.deepEqual(made().x402, { version: 1, resources: [`${BASE}/api/resources/report/invoke`] });
    const inPlace: Changes = { 'resources.report.expose': ['origin'] };
    assert.deepEqual(made(inPlace).x402, { version: 1, resources: [] });
    const plain = { ...inPlace, 'resources.report.backend.path': '/report' };
    assert.deepEqual(made(plain).x402, { version: 1, resources: [`${BASE}/report`] });
  });

  it('tell a program where the others are', () => {
    const { index } = made({ 'protocols.a2a.enabled': true, publish: ['index', 'llms'] });
    assert.deepEqual(index, {
      name: 'Shop',
      resources: `${BASE}/api/resources`,
      discovery: `${BASE}/.well-known/agent-commerce`,
      a2a: `${BASE}/a2a`,
      llms: `${BASE}/llms.txt`,
    });
  });

  it('tell a person the same, in a page without script', () => {
    const { page } = made();
    assert.match(page, /^<!doctype html><html lang="en">/);
    assert.ok(page.includes('<dt>Report</dt>') && page.includes(`href="${BASE}/openapi.json"`));
    assert.doesNotMatch(page, /<script/i);
  });

  it('keep texts of the configuration from being markup', () => {
    const name = 'A [b](c)\n# <script>';
    const { llms, page } = made({ 'merchant.name': name, 'resources.report.name': name });
    assert.match(llms, /^# A \\\[b\\\]\(c\) # <script>\n/);
    assert.ok(llms.includes('- [A \\[b\\](c) # <script>]('));
    assert.doesNotMatch(page, /<script/);
  });
});
