import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { ResourceInfoSchema } from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import {
  type DiscoveryExtension,
  extractDiscoveryInfo,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import release from '../../package.json' with { type: 'json' };
import discoverySchema from '../../schemas/discovery.schema.json' with { type: 'json' };
import resourceSchema from '../../schemas/resource.schema.json' with { type: 'json' };
import type { BazaarForms, Extension } from '../../src/payments/x402/wire/types.ts';
import { ConfigError, type ConfigProblem } from '../../src/problems/problem.ts';
import { compileCatalogue, MOST_BYTES } from '../../src/resources/catalogue.ts';
import { type AdapterHealths, discoveryDocument, HEALTH_REFRESH_MS } from '../../src/resources/discovery.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { type Changes, load, problems } from '../config/document/document.ts';
import { asking, CHECKOUT_PEM, PROVIDER } from '../config/sections/ap2.ts';

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
(formatsPlugin.default ?? formatsPlugin)(ajv);
const obeys = (schema: object, value: unknown): void => {
  const validate = ajv.compile(schema);
  assert.ok(validate(value), JSON.stringify(validate.errors));
};
const parsed = (document: StaticDocument): Record<string, unknown> =>
  JSON.parse(Buffer.from(document.bytes).toString()) as Record<string, unknown>;
const START = '2026-01-02T03:04:05.000Z';
const after = (ms: number): string => new Date(Date.parse(START) + ms).toISOString();
const http = (status: 'pass' | 'warn' | 'fail', checkedAt: string): AdapterHealths => ({ http: { status, checkedAt } });

const CANARY = 'c4n4ry';
/** Every value that must not be published has the canary. */
const secretive = load({
  'server.adminToken': `${CANARY}-admin`,
  'backend.baseUrl': `http://127.0.0.1:3000/${CANARY}`,
  'backend.headers': { 'x-key': CANARY },
  storage: { redis: { url: `redis://:${CANARY}@redis.example` } },
  'payments.x402.rpcUrl': `https://rpc.example/${CANARY}`,
  'payments.x402.facilitator': {
    mode: 'remote',
    url: `https://${CANARY}.example`,
    auth: { type: 'bearer', token: CANARY },
  },
  'resources.report.backend.headers': { 'x-other': CANARY },
  'resources.report.backend.path': `/${CANARY}/{city}?key=${CANARY}`,
  'resources.free': {
    name: 'Free',
    description: 'Nothing to pay',
    backend: { method: 'DELETE', path: '/x' },
    pricing: { type: 'free' },
  },
});
const catalogue = compileCatalogue(secretive, START);

/** Three entries with these changes of the first and the second; the last has no price. */
function severalEntries(first: Changes = {}, second: Changes = {}) {
  const entry = (network: string, more: Changes) => {
    const facilitator = { mode: 'remote', url: `https://${CANARY}.example` };
    return { network, payTo: `0x${'1'.repeat(40)}`, facilitator, ...more };
  };
  const last = entry('arbitrum-sepolia', { assetName: 'USD Coin', currency: 'ARB' });
  return load({
    'payments.x402': [entry('base-sepolia', first), entry('polygon-amoy', { currency: 'AMOY', ...second }), last],
    'resources.report.pricing': { type: 'fixed', amounts: { USDC: '0.01', AMOY: '0.02' } },
  });
}

describe('GET /api/resources', () => {
  const { resources } = parsed(catalogue.listing) as { resources: Record<string, unknown>[] };
  it('lists resources in the shape of the interface specification', () => {
    obeys({ type: 'array', items: resourceSchema, minItems: 2 }, resources);
    assert.deepEqual(resources[1], {
      id: 'free',
      name: 'Free',
      description: 'Nothing to pay',
      inputSchema: { type: 'object', properties: {}, additionalProperties: false },
      method: 'DELETE',
      pricing: { type: 'free' },
      exposedVia: ['http'],
      paymentMethods: [],
    });
    assert.deepEqual(resources[0]?.['pricing'], { type: 'fixed', amount: '0.01', currency: 'USDC' });
    assert.deepEqual(resources[0]?.['paymentMethods'], ['x402']);
  });
  it('lists the prices in further entries as alternatives of the first', () => {
    const asset = '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582';
    const [entry] = parsed(compileCatalogue(severalEntries()).listing)['resources'] as Record<string, unknown>[];
    obeys({ type: 'array', items: resourceSchema }, [entry]);
    assert.deepEqual(entry?.['pricing'], {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC' },
      alternatives: [{ amount: '0.02', currency: 'AMOY', network: 'eip155:80002', asset }],
    });
  });
  it('has the address of what is sold at its own, and of nothing else', () => {
    const changes = {
      'backend.baseUrl': 'http://127.0.0.1:3000/internal',
      'resources.report.expose': ['http', 'origin'],
    };
    const free = { name: 'Free', backend: { method: 'GET', path: '/free' }, pricing: { type: 'free' } };
    const listing = parsed(compileCatalogue(load({ ...changes, 'resources.free': free })).listing);
    const [inPlace, elsewhere] = listing['resources'] as Record<string, unknown>[];
    obeys({ type: 'array', items: resourceSchema, minItems: 2 }, listing['resources']);
    assert.equal(inPlace?.['address'], 'https://api.shop.example/reports/{city}');
    assert.deepEqual([inPlace['method'], inPlace['exposedVia']], ['GET', ['http', 'origin']]);
    assert.ok(elsewhere !== undefined && !('address' in elsewhere));
  });
  it('has each entry by itself too, with the bytes of the list, and no other', () => {
    for (const resource of resources) {
      const { bytes, etag } = catalogue.entry(String(resource['id'])) ?? assert.fail();
      assert.ok(Buffer.from(catalogue.listing.bytes).includes(bytes));
      assert.equal(catalogue.entry(String(resource['id']))?.etag, etag);
      assert.notEqual(etag, catalogue.listing.etag);
    }
    for (const id of ['nothing', '__proto__', '']) assert.equal(catalogue.entry(id), undefined);
  });
  it('keeps the order of the configuration', () =>
    assert.deepEqual(
      resources.map(({ id }) => id),
      ['report', 'free'],
    ));
  it('has a strong ETag of its bytes, equal on every replica', () => {
    assert.match(catalogue.listing.etag, /^"[A-Za-z0-9_-]{27}"$/);
    const digest = createHash('sha256').update(catalogue.listing.bytes).digest('base64url');
    assert.ok(digest.startsWith(catalogue.listing.etag.slice(1, -1)));
    assert.equal(compileCatalogue(secretive).listing.etag, catalogue.listing.etag);
  });
});

describe('GET /.well-known/agent-commerce', () => {
  const document = parsed(catalogue.discovery(http('pass', START)));
  it('fits its schema, with and without payments', () => {
    obeys(discoverySchema, document);
    const free = load({ payments: undefined, 'resources.report.pricing': { type: 'free' } });
    const other = parsed(compileCatalogue(free, START).discovery({}));
    obeys(discoverySchema, other);
    assert.deepEqual([other['payments'], other['paymentProviders']], [{}, []]);
  });
  it('names the release, the merchant and the payee', () => {
    assert.deepEqual(document['gateway'], {
      implementationVersion: release.version,
      supportedSpec: 'agent-commerce/v1.0.0',
    });
    assert.deepEqual(document['merchant'], { id: 'shop', name: 'Shop', publicBaseUrl: 'https://api.shop.example' });
    assert.deepEqual(document['payments'], {
      x402: {
        enabled: true,
        network: 'eip155:84532',
        asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        assetName: 'USDC',
        assetVersion: '2',
        assetDecimals: 6,
        payTo: '0x1111111111111111111111111111111111111111',
        maxTimeoutSeconds: 120,
        facilitator: { mode: 'remote' },
        mode: 'testnet',
      },
    });
  });
  it('names further entries beside the first, and none that is not offered', () => {
    const document = parsed(compileCatalogue(severalEntries(), START).discovery({}));
    obeys(discoverySchema, document);
    assert.ok(!JSON.stringify(document).includes(CANARY));
    const { x402 } = document['payments'] as { x402: { alternatives: object[] } };
    const { enabled, alternatives, ...first } = { enabled: undefined, ...x402 };
    const amoy = { network: 'eip155:80002', asset: '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582' };
    assert.deepEqual([enabled, alternatives.length, alternatives[0]], [true, 2, { ...first, ...amoy }]);
    const networks = (first: Changes, second: Changes) => {
      const { payments } = parsed(compileCatalogue(severalEntries(first, second), START).discovery({}));
      const { x402: shown } = payments as { x402: { network: string; alternatives: { network: string }[] } };
      return [shown.network, ...shown.alternatives.map(({ network }) => network)];
    };
    assert.deepEqual(networks({ offered: false }, {}), ['eip155:80002', 'eip155:421614']);
    assert.deepEqual(networks({}, { offered: false }), ['eip155:84532', 'eip155:421614']);
  });
  it('names the parts of x402 that are not supported', () => {
    const [provider, ...more] = document['paymentProviders'] as Record<string, unknown>[];
    assert.deepEqual(more, []);
    assert.equal(provider?.['supportedSpec'], 'x402/v2 scheme=exact family=eip155');
    const unsupported = provider?.['unsupported'] as string[];
    for (const name of ['permit2', 'upto', 'batch-settlement', 'auth-capture', 'bazaar', 'x402-v1', 'solana'])
      assert.ok(unsupported.includes(name), name);
  });
  it('names what of x402 the configuration chooses', () => {
    const signing = { offers: true };
    const listed = secretive.resources.map((resource) => ({ ...resource, bazaar: { example: {} } }));
    const chosen = parsed(discoveryDocument({ ...secretive, signing, resources: listed }, START)({}));
    const [provider] = chosen['paymentProviders'] as { capabilities: string[]; unsupported: string[] }[];
    for (const name of ['bazaar', 'signed-offers', 'signed-receipts']) {
      assert.ok(provider?.capabilities.includes(name), name);
      assert.ok(!provider?.unsupported.includes(name), name);
    }
    assert.ok(provider?.unsupported.includes('settle-after-answer'));
  });
  it('lists the mounted adapters only', () => {
    assert.deepEqual(
      (document['adapters'] as { name: string }[]).map(({ name }) => name),
      ['http'],
    );
    assert.deepEqual(document['protocols'], {
      http: { enabled: true },
      mcp: { enabled: false, mountPath: '/mcp' },
      a2a: { enabled: false, mountPath: '/a2a' },
      acp: { enabled: false, mountPath: '/acp' },
    });
    assert.equal((document['store'] as { name: string }).name, 'redis');
    assert.deepEqual(document['authorizationProviders'], []);
  });
  it('has the health of each adapter', () => {
    const health = (healths: AdapterHealths) =>
      (parsed(compileCatalogue(secretive, START).discovery(healths))['adapters'] as { health: unknown }[])[0]?.health;
    assert.deepEqual(health({}), { status: 'warn', checkedAt: START });
    assert.deepEqual(health(http('fail', after(9))), { status: 'fail', checkedAt: after(9) });
  });
  it('keeps bytes and ETag while the status stays and the check is less than 30 s newer', () => {
    const { discovery } = compileCatalogue(secretive, START);
    const first = discovery(http('pass', START));
    assert.equal(discovery(http('pass', after(2_000))), first);
    assert.equal(discovery(http('pass', after(HEALTH_REFRESH_MS - 1))), first);
    const second = discovery(http('pass', after(HEALTH_REFRESH_MS)));
    assert.notEqual(second.etag, first.etag);
    const third = discovery(http('warn', after(HEALTH_REFRESH_MS + 1)));
    assert.notEqual(third.etag, second.etag);
    assert.equal(discovery(http('pass', START)).etag, first.etag);
  });
});

describe('the name and the tags of an offer', () => {
  const official = (members: object): boolean =>
    ResourceInfoSchema.safeParse({ url: 'https://api.shop.example', ...members }).success;
  const TEXTS = ['a', '~ '.repeat(16), 'x'.repeat(33), 'Café', '市場'];

  it('are that of the merchant where the official schema takes it, else none', () => {
    for (const name of TEXTS) {
      const [resource] = load({ 'merchant.name': name }).resources;
      assert.deepEqual(resource?.labels, official({ serviceName: name }) ? { serviceName: name } : {}, name);
    }
  });
  it('are tags that it takes; others are refused at start', () => {
    const many = (count: number) => Array.from({ length: count }, (_, place) => `tag ${place}`);
    for (const given of [[], many(5), many(6), [''], ...TEXTS.map((text) => [text])])
      assert.equal(problems({ 'resources.report.tags': given }).length === 0, official({ tags: given }), `${given}`);
  });
  it('are in the list, where there are any', () => {
    const { listing } = compileCatalogue(load({ 'resources.report.tags': ['weather', 'Europe'] }));
    const { resources } = parsed(listing) as { resources: Record<string, unknown>[] };
    obeys({ type: 'array', items: resourceSchema, minItems: 1 }, resources);
    assert.deepEqual(resources[0]?.['tags'], ['weather', 'Europe']);
  });
});

it('a resource that is sold at its own address alone adds no adapter to the discovery document', () => {
  const alone = load({ 'resources.report.expose': ['origin'], 'protocols.http.enabled': false });
  const document = parsed(compileCatalogue(alone, START).discovery({}));
  obeys(discoverySchema, document);
  assert.deepEqual(document['adapters'], []);
});

describe('documents of a gateway that needs mandates', () => {
  const strict = compileCatalogue(load(asking({ 'authorization.ap2.algorithms': ['EdDSA'] })), START);
  it('mark each resource that needs one, and no other', () => {
    const { resources: asked } = parsed(strict.listing) as { resources: Record<string, unknown>[] };
    obeys({ type: 'array', items: resourceSchema, minItems: 1 }, asked);
    assert.deepEqual(asked[0]?.['authorization'], { required: ['ap2'] });
    const { resources: others } = parsed(catalogue.listing) as { resources: object[] };
    for (const resource of others) assert.ok(!('authorization' in resource));
  });
  it('have capabilities, issuers and the path of the keys', () => {
    const document = parsed(strict.discovery({}));
    obeys(discoverySchema, document);
    const [provider, ...more] = document['authorizationProviders'] as Record<string, unknown>[];
    assert.deepEqual(more, []);
    assert.deepEqual(
      [provider?.['name'], provider?.['kind'], provider?.['supportedSpec'], provider?.['status']],
      ['ap2', 'authorization', 'ap2/v0.2.0 mode=direct,autonomous', 'experimental'],
    );
    const capabilities = provider?.['capabilities'] as string[];
    for (const known of ['direct', 'autonomous', 'checkout-receipt', 'checkout.line_items', 'payment.budget'])
      assert.ok(capabilities.includes(known), known);
    assert.equal(capabilities.filter((name) => /^(checkout|payment)\./.test(name)).length, 10, 'every constraint');
    assert.deepEqual(document['authorization'], {
      ap2: {
        enabled: true,
        profile: 'agent-commerce/ap2/checkout/v1',
        audience: 'https://api.shop.example',
        algorithms: ['ES256', 'EdDSA'],
        issuers: [PROVIDER.id],
        jwksUri: 'https://api.shop.example/.well-known/jwks.json',
      },
    });
    const key = CHECKOUT_PEM.split('\n')[1] ?? assert.fail('no key');
    assert.ok(!Buffer.from(strict.discovery({}).bytes).toString().includes(key));
    assert.ok(!('authorization' in parsed(catalogue.discovery({}))));
  });
});

describe('the published documents', () => {
  it('contain no internal URL, token, header or path', () => {
    for (const document of [catalogue.listing, catalogue.discovery({})])
      assert.doesNotMatch(Buffer.from(document.bytes).toString(), /c4n4ry|redis\.example|rpc\.example|127\.0\.0\.1/);
  });
});

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
    assert.deepEqual(listed().about, { mimeType: 'application/json', serviceName: 'Shop' });
    const shown = { description: 'Prices of a city', mimeType: 'text/csv', tags: ['weather'] };
    const changes = Object.fromEntries(Object.entries(shown).map(([key, value]) => [`${R}.${key}`, value]));
    const iconUrl = 'https://shop.example/icon.svg';
    const { about } = listed({ ...changes, 'merchant.iconUrl': iconUrl });
    assert.deepEqual(about, { ...shown, serviceName: 'Shop', iconUrl });
    assert.ok(ResourceInfoSchema.safeParse({ url: BASE, ...about }).success);
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
  const SHOWN = { example: BERLIN };
  const prices = { type: 'object', properties: { price: { type: 'string' } } };
  const ofA2a = { 'protocols.a2a.enabled': true, [`${R}.expose`]: ['a2a'] };
  const large = { ...SHOWN, output: 'x'.repeat(MOST_BYTES) };
  const LARGE = /makes \d+ bytes of each challenge, of which there may be 1536: shorten example and output/;
  const rows: readonly (readonly [what: string, bazaar: object, at: string, message: RegExp, changes?: Changes])[] = [
    ['without an example', {}, '.example', /is missing/],
    ['with an unknown key', { ...SHOWN, title: 'x' }, '.title', /not a known key/],
    ['with an example that lacks a member', { example: {} }, '.example.city', /is required/],
    ['with a member of another type', { example: { city: 7 } }, '.example.city', /must be string/],
    ['with a member that is none', { example: { ...BERLIN, x: 1 } }, '.example.x', /not a property of this input/],
    ['with a value that no path can hold', { example: { city: '..' } }, '.example.city', /path/],
    [
      'with an answer that does not fit',
      { ...SHOWN, output: { price: 1 } },
      '.output',
      /must fit outputSchema/,
      { [`${R}.outputSchema`]: prices },
    ],
    ['with too much in it', large, '', LARGE],
    ['for what is free', SHOWN, '', /for resources with a price/, { [`${R}.pricing`]: { type: 'free' } }],
    ['for what no listed channel sells', SHOWN, '', /needs one of http, origin, mcp in expose/, ofA2a],
  ];
  for (const [what, bazaar, at, message, changes] of rows)
    it(what, () => {
      const [problem, ...more] = faults(bazaar, changes);
      assert.deepEqual([problem?.path, more], [`${R}.bazaar${at}`, []]);
      assert.match(problem?.message ?? '', message);
    });
});
