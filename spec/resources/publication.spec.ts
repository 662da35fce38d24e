import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import release from '../../package.json' with { type: 'json' };
import discoverySchema from '../../schemas/discovery.schema.json' with { type: 'json' };
import resourceSchema from '../../schemas/resource.schema.json' with { type: 'json' };
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { type AdapterHealths, discoveryDocument, HEALTH_REFRESH_MS } from '../../src/resources/discovery.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { load } from '../config/document/document.ts';
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
