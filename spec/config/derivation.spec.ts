import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { changed, MAINNET, PAYEE } from './document/document.ts';

/** What a member becomes; undefined: it is removed. */
const WRONG = [undefined, null, 7, 'x', [null], { x: null }];

/** The document with each of its members made wrong in each of these ways. */
function* edits(document: unknown): Generator<unknown> {
  if (document === null || typeof document !== 'object') return;
  for (const [name, value] of Object.entries(document)) {
    const made = (to: unknown) =>
      Array.isArray(document)
        ? document.map((item: unknown, at) => (String(at) === name ? to : item))
        : { ...document, [name]: to };
    for (const wrong of WRONG) yield made(wrong);
    for (const edit of edits(value)) yield made(edit);
  }
}

const KEY = Buffer.alloc(32, 1).toString('base64');

/** Every section with a list in it, and what the rules of several sections read together. */
const RICH = changed({
  ...structuredClone(MAINNET),
  server: { adminToken: 'operator-token-1', allowedOrigins: ['https://a.example'], allowedHosts: ['a'] },
  management: { port: 9 },
  'backend.headers': { a: 'b' },
  'backend.probe': { path: '/up' },
  'backend.passthrough': { enabled: true, include: ['/a'], exclude: ['/a/b'] },
  'storage.redis': {
    sentinel: { name: 'a', nodes: ['a:1'], username: 'a', password: 'b' },
    tls: { ca: 'x' },
    username: 'a',
    password: 'b',
  },
  'storage.sealing': { keys: [{ id: 'a', key: KEY }] },
  'payments.x402.facilitator': {
    mode: 'remote',
    url: 'https://a.example',
    auth: { type: 'bearer', token: 'a' },
    fallbacks: [{ url: 'https://b.example', auth: { type: 'cdp', keyId: 'a', keySecret: 'b' } }],
  },
  protocols: {
    mcp: { enabled: true },
    a2a: { enabled: true, provider: { organization: 'A', url: 'https://a.example' }, signingKey: 'x' },
    acp: {
      enabled: true,
      auth: { clients: [{ id: 'a', tokens: ['token-of-client-1'] }] },
      backend: { headers: { a: 'b' }, operations: { getCheckoutSession: { path: '/a/{checkout_session_id}' } } },
      idempotency: { secret: 'x'.repeat(32) },
      discovery: { documentationUrl: 'https://a.example', supportedCurrencies: ['eur'] },
    },
  },
  authorization: {
    ap2: {
      enabled: true,
      currencies: { EUR: 2 },
      checkout: { signingKey: 'x', alsoTrust: [{ kty: 'EC' }] },
      issuers: [
        { id: 'https://a.example', jwksUri: 'https://a.example/k' },
        { id: 'b', keys: [{ kty: 'EC' }] },
      ],
    },
  },
  signing: { key: 'x', alsoPublish: [{ kty: 'EC' }] },
  'resources.report.authorization': { required: ['ap2'] },
  'resources.report.expose': ['http', 'origin'],
  'resources.report.backend.inputBindings': { path: ['city'], query: [] },
  'resources.report.backend.headers': { a: 'b' },
  'resources.report.pricing.settle': 'after',
  'resources.report.pricing.by': { unit: { pointer: '/city', min: '0.01', max: '1' } },
  'resources.report.backend.relayStatuses': { sold: [404], unpaid: [409] },
  'resources.report.outputSchema': { type: 'object', properties: { a: { type: 'string' } } },
  publish: ['index'],
  limits: { rate: { perSecond: 1 }, unpaidWork: { perResource: 1 } },
});

const BASE = (changed(MAINNET)['payments'] as { readonly x402: object }).x402;
/** Two entries, and a price in each. */
const SEVERAL = changed({
  ...MAINNET,
  'payments.x402': [BASE, { network: 'polygon', payTo: PAYEE, currency: 'POL', facilitator: { mode: 'local' } }],
  'resources.report.pricing': { type: 'fixed', amounts: { USDC: '0.01', POL: '0.02' } },
});

function pathsOf(document: unknown): readonly string[] {
  try {
    parseConfig(JSON.stringify(document), {});
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ path }) => path);
    throw new Error(`not told of ${JSON.stringify(document)}`, { cause: error });
  }
  return [];
}

describe('a document of which something is refused', () => {
  it('is checked to its end, whatever it is', () => {
    for (const edit of edits(RICH)) pathsOf(edit);
    for (const edit of edits(SEVERAL)) pathsOf(edit);
  });

  /** Mistakes that the schema finds, one in each section. */
  const BESIDE = {
    'merchant.id': '',
    'server.port': 'x',
    'backend.allowNonLoopback': 'x',
    'storage.eventsMaxLength': 1,
    'payments.x402.maxTimeoutSeconds': 1,
    'protocols.a2a.errorProfile': 'x',
    'authorization.ap2.maxEnvelopeBytes': 1,
    'signing.offers': 'x',
    'resources.report.name': '',
    'limits.maxInFlight': 0,
  };
  /** Mistakes that a rule behind the schema finds in these sections, by their paths. */
  const RULES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    'backend.headers.Host': { 'backend.headers': { Host: 'a' } },
    'backend.passthrough.include[0]': { 'backend.passthrough': { enabled: true, include: ['a'] } },
    'storage.redis.password': { 'storage.redis': { url: 'redis://a', username: 'a' } },
    'storage.sealing.keys[1].id': {
      'storage.sealing': {
        keys: [
          { id: 'a', key: KEY },
          { id: 'a', key: `AQ${KEY.slice(2)}` },
        ],
      },
    },
    'protocols.mcp.mountPath': { 'protocols.mcp.mountPath': '/api' },
    'protocols.a2a.iconUrl': { 'protocols.a2a.iconUrl': 'a' },
    'protocols.acp.idempotency.secret': { 'protocols.acp.enabled': true },
    'payments.x402.payTo': { 'payments.x402.payTo': '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' },
    'payments.x402.facilitator.url': { 'payments.x402.facilitator.url': 'http://a.example' },
    'authorization.ap2.issuers[1].id': {
      'authorization.ap2': { enabled: true, issuers: [{ id: 'did:web:a.example' }, { id: 'did:web:a.example' }] },
    },
    'signing.key': { signing: { key: 'a' } },
    'resources.report.backend.path': { 'resources.report.backend.path': '/a/{town}' },
    'resources.report.pricing.settle': {
      'resources.report.pricing.settle': 'after',
      'resources.report.backend.method': 'POST',
      'storage.sealing': { keys: [{ id: 'a', key: KEY }] },
    },
    'resources.report.pricing.amount': { 'resources.report.pricing.amount': '0' },
    'resources.report.inputSchema.maxLenght': { 'resources.report.inputSchema.maxLenght': 1 },
    'resources.report.expose': { 'resources.report.expose': ['a2a'] },
  };
  for (const [path, changes] of Object.entries(RULES))
    it(`is still told of ${path}`, () => {
      const found = pathsOf(
        changed({ ...structuredClone(MAINNET), 'payments.x402.payTo': PAYEE, ...changes, ...BESIDE }),
      );
      for (const one of [path, ...Object.keys(BESIDE)])
        assert.ok(found.includes(one), `${one} is not among ${found.join(', ')}`);
    });
});
