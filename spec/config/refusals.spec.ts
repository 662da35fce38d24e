import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Changes, load, MAINNET, PAYEE, problems } from './document.ts';

type Row = readonly [rule: string, changes: Changes, path: string, message: RegExp];

const X = 'payments.x402';
const R = 'resources.report';
const long = (length: number): string => 'x'.repeat(length);
const input = (properties: object, more: object = {}) => ({
  [`${R}.inputSchema`]: { type: 'object', properties, ...more },
});
/** A resource without path parameter, so that only the named rule is broken. */
const plain: Changes = { [`${R}.backend.path`]: '/reports' };

const SHAPE: readonly Row[] = [
  ['another version', { version: 2 }, 'version', /must be the number 1/],
  ['no merchant', { merchant: undefined }, 'merchant', /is missing: the merchant/],
  [
    'an unknown key, with the one that was meant',
    { 'server.adminTokn': 'x' },
    'server.adminTokn',
    /did you mean adminToken\?/,
  ],
  [
    'an unknown key that is like no other',
    { 'merchant.zzzzzz': 1 },
    'merchant.zzzzzz',
    /known here: id, name, publicBaseUrl/,
  ],
  ['a number where YAML needs quotes', { [`${X}.assetVersion`]: 2 }, `${X}.assetVersion`, /put it in quotes/],
  ['a price without quotes', { [`${R}.pricing.amount`]: 0.01 }, `${R}.pricing.amount`, /put it in quotes/],
  ['a merchant id that cannot name store keys', { 'merchant.id': 'a}b' }, 'merchant.id', /must be an id of 1 to 64/],
  [
    'a public URL with a query',
    { 'merchant.publicBaseUrl': 'https://a.example/?x=1' },
    'merchant.publicBaseUrl',
    /query/,
  ],
  [
    'a public URL that is none',
    { 'merchant.publicBaseUrl': 'api.shop.example' },
    'merchant.publicBaseUrl',
    /absolute http/,
  ],
  ['a name that hides text', { 'merchant.name': 'Shop\u202eevil' }, 'merchant.name', /bidirectional/],
  ['a token with a space', { 'server.adminToken': 'two words' }, 'server.adminToken', /visible ASCII/],
  ['a token that is too long', { 'server.adminToken': long(513) }, 'server.adminToken', /at most 512/],
  ['any browser origin', { 'server.allowedOrigins': ['*'] }, 'server.allowedOrigins[0]', /exact origin/],
  [
    'an origin with a slash',
    { 'server.allowedOrigins': ['https://a.example', 'https://b.example/'] },
    'server.allowedOrigins[1]',
    /exact/,
  ],
  ['an opaque origin', { 'server.allowedOrigins': ['null'] }, 'server.allowedOrigins[0]', /exact origin/],
  ['one port for agents and probes', { 'management.port': 8402 }, 'management.port', /must differ from server.port/],
  ['two stores', { 'storage.redis': { url: 'redis://x' } }, 'storage', /exactly one of redis or sqlite/],
  ['no store', { storage: {} }, 'storage', /exactly one of redis or sqlite/],
  ['sqlite for several replicas', { 'storage.replicas': 2 }, 'storage.replicas', /need storage.redis/],
  ['a store URL of another kind', { storage: { redis: { url: 'http://x' } } }, 'storage.redis.url', /redis:\/\//],
  ['a mount on our own paths', { 'protocols.mcp.mountPath': '/api' }, 'protocols.mcp.mountPath', /own paths/],
  [
    'a bearer facilitator without token',
    { [`${X}.facilitator.auth`]: { type: 'bearer' } },
    `${X}.facilitator.auth.token`,
    /missing/,
  ],
  [
    'a remote facilitator with a key',
    { [`${X}.facilitator.privateKey`]: `0x${'1'.repeat(64)}` },
    `${X}.facilitator.privateKey`,
    /not used here/,
  ],
  ['an amount on a free resource', { [`${R}.pricing.type`]: 'free' }, `${R}.pricing.amount`, /not used here/],
  ['no resource', { resources: {} }, 'resources', /resources by id/],
  ['a resource id with a slash', { 'resources.a/b': {} }, 'resources["a/b"]', /1 to 128 letters/],
  ['a key that reaches a prototype', { 'resources.constructor': {} }, 'resources.constructor', /no key may have/],
];

const HOSTS: readonly Row[] = [
  ...['http://10.0.0.1', 'http://shop.example:3000', 'http://[fd00::1]', 'http://128.0.0.1'].map(
    (url): Row => [
      `the merchant at ${url} unasked`,
      { 'backend.baseUrl': url },
      'backend.baseUrl',
      /on loopback.*allowNonLoopback/,
    ],
  ),
  ...[
    'http://169.254.169.254',
    'http://2852039166',
    'http://0xa9fea9fe',
    'http://0.0.0.0:3000',
    'http://[::]',
    'http://[fe80::1]',
    'http://[::ffff:127.0.0.1]',
    'http://[::ffff:169.254.169.254]',
    'http://[fd00:ec2::254]',
    'http://metadata.google.internal',
    'http://metadata.google.internal.',
    'http://100.100.100.200',
    'http://224.0.0.1',
  ].map(
    (url): Row => [
      `the merchant at ${url} even when asked`,
      { 'backend.baseUrl': url, 'backend.allowNonLoopback': true },
      'backend.baseUrl',
      /must not name a link-local/,
    ],
  ),
  ['backend credentials', { 'backend.baseUrl': 'http://u:p@127.0.0.1' }, 'backend.baseUrl', /credentials/],
  ['an empty userinfo', { 'backend.baseUrl': 'http://@127.0.0.1' }, 'backend.baseUrl', /credentials/],
  ['a backend query', { 'backend.baseUrl': 'http://127.0.0.1/?' }, 'backend.baseUrl', /query/],
  ['a backend fragment', { 'backend.baseUrl': 'http://127.0.0.1/#a' }, 'backend.baseUrl', /fragment/],
  ['a backend over another scheme', { 'backend.baseUrl': 'ftp://127.0.0.1' }, 'backend.baseUrl', /absolute http/],
  ['a host from input', { 'backend.baseUrl': 'http://{host}:80' }, 'backend.baseUrl', /braces/],
  ['a header of the hop', { 'backend.headers': { Connection: 'x' } }, 'backend.headers.Connection', /sets itself/],
  [
    'a payment header',
    { [`${R}.backend.headers`]: { 'payment-signature': 'x' } },
    `${R}.backend.headers.payment-signature`,
    /sets itself/,
  ],
  [
    'a header value with a line break',
    { 'backend.headers': { 'x-a': 'b\r\nc: d' } },
    'backend.headers.x-a',
    /visible ASCII/,
  ],
  [
    'a facilitator on metadata',
    { [`${X}.facilitator.url`]: 'http://169.254.169.254' },
    `${X}.facilitator.url`,
    /link-local/,
  ],
];

const MONEY: readonly Row[] = [
  ['a price of zero', { [`${R}.pricing.amount`]: '0.00' }, `${R}.pricing.amount`, /more than zero/],
  [
    'a price the asset cannot hold',
    { [`${R}.pricing.amount`]: '0.0000001' },
    `${R}.pricing.amount`,
    /more decimals than the asset \(6\)/,
  ],
  ['a price with an exponent', { [`${R}.pricing.amount`]: '1e3' }, `${R}.pricing.amount`, /not a decimal number/],
  ['a negative price', { [`${R}.pricing.amount`]: '-1' }, `${R}.pricing.amount`, /not a decimal number/],
  ['a price in another currency', { [`${R}.pricing.currency`]: 'EUR' }, `${R}.pricing.currency`, /must be "USDC"/],
  ['a price nobody can pay', { payments: undefined }, `${R}.pricing`, /needs payments.x402/],
  ['a priced resource without payment method', { [`${R}.payments`]: [] }, `${R}.payments`, /must have x402/],
  [
    'a free resource with payment method',
    { [`${R}.pricing`]: { type: 'free' }, [`${R}.payments`]: ['x402'] },
    `${R}.payments`,
    /must be empty/,
  ],
  ['an address that is too short', { [`${X}.payTo`]: '0x12' }, `${X}.payTo`, /40 hexadecimal/],
  [
    'a payee with a wrong checksum',
    { [`${X}.payTo`]: '0x036CbD53842c5426634e7929541eC2318f3dCF7E' },
    `${X}.payTo`,
    /checksum/,
  ],
  ['the zero address as payee', { [`${X}.payTo`]: `0x${'0'.repeat(40)}` }, `${X}.payTo`, /zero address/],
  ['the token as payee', { [`${X}.payTo`]: '0x036cbd53842c5426634e7929541ec2318f3dcf7e' }, `${X}.payTo`, /token's own/],
  ['an unknown network', { [`${X}.network`]: 'eip155:999999' }, `${X}.network`, /is unknown; known: .*eip155:8453/],
  [
    'a network that is no EVM',
    { [`${X}.network`]: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' },
    `${X}.network`,
    /EVM network/,
  ],
  [
    'the wrong EIP-712 name of USDC',
    { [`${X}.assetName`]: 'USD Coin', [`${X}.currency`]: 'USDC' },
    `${X}.assetName`,
    /must be "USDC"/,
  ],
  ['the wrong decimals of USDC', { [`${X}.assetDecimals`]: 18 }, `${X}.assetDecimals`, /must be 6/],
  [
    'a local facilitator without node',
    { [`${X}.facilitator`]: { mode: 'local', privateKey: `0x${'1'.repeat(64)}` } },
    `${X}.rpcUrl`,
    /settles through a node/,
  ],
  ['a node over another scheme', { [`${X}.rpcUrl`]: 'ws://127.0.0.1' }, `${X}.rpcUrl`, /absolute http/],
  [
    '402 relayed from the merchant',
    { [`${R}.pricing`]: { type: 'free' }, [`${R}.backend.relayStatuses`]: [402] },
    `${R}.backend.relayStatuses`,
    /402/,
  ],
  [
    'relayed statuses on a paid resource',
    { [`${R}.backend.relayStatuses`]: [404] },
    `${R}.backend.relayStatuses`,
    /free resources only/,
  ],
  ['real money unasked', { ...MAINNET, [`${X}.allowMainnet`]: false }, `${X}.allowMainnet`, /must be true/],
  ['real money without node', { ...MAINNET, [`${X}.rpcUrl`]: undefined }, `${X}.rpcUrl`, /on a mainnet every payment/],
  [
    'real money over plain http',
    { ...MAINNET, [`${X}.facilitator.url`]: 'http://facilitator.example' },
    `${X}.facilitator.url`,
    /https/,
  ],
  ['real money in sqlite', { ...MAINNET, storage: { sqlite: { path: 'x.db' } } }, 'storage', /redis on a mainnet/],
  [
    'real money for another token',
    { ...MAINNET, [`${X}.asset`]: PAYEE.replace('1', '2') },
    `${X}.asset`,
    /canonical USDC/,
  ],
  [
    'real money with the wrong EIP-712 name',
    { ...MAINNET, [`${X}.assetName`]: 'USDC' },
    `${X}.assetName`,
    /must be "USD Coin"/,
  ],
  [
    'real money for a tutorial account',
    { ...MAINNET, [`${X}.payTo`]: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' },
    `${X}.payTo`,
    /development account/,
  ],
  [
    'a mainnet key in the document',
    { ...MAINNET, [`${X}.facilitator`]: { mode: 'local', privateKey: `0x${'1'.repeat(64)}` } },
    `${X}.facilitator.privateKey`,
    /mounted file/,
  ],
];

const RELEASE: readonly Row[] = [
  ...['mcp', 'a2a', 'acp'].map(
    (front): Row => [
      `${front} switched on`,
      { [`protocols.${front}.enabled`]: true },
      `protocols.${front}.enabled`,
      /not served by this release yet/,
    ],
  ),
  [
    'mandates switched on',
    { 'authorization.ap2.enabled': true },
    'authorization.ap2.enabled',
    /not served by this release yet/,
  ],
  [
    'a resource that needs a mandate',
    { [`${R}.authorization`]: { required: ['ap2'] } },
    `${R}.authorization.required`,
    /not served by this release yet/,
  ],
  ['a resource on no mounted front', { [`${R}.expose`]: ['mcp'] }, `${R}.expose`, /at least one front/],
  ['a resource with http switched off', { 'protocols.http.enabled': false }, `${R}.expose`, /at least one front/],
  ['a front nobody knows', { [`${R}.expose`]: ['smtp'] }, `${R}.expose[0]`, /http, mcp or a2a/],
];

const OPERATION: readonly Row[] = [
  ['a path without slash', { [`${R}.backend.path`]: '{city}/x' }, `${R}.backend.path`, /begins with one \//],
  ['a path with a host', { [`${R}.backend.path`]: '//{city}/x' }, `${R}.backend.path`, /begins with one \//],
  ['a whole URL as path', { [`${R}.backend.path`]: 'http://{city}/' }, `${R}.backend.path`, /begins with one \//],
  ['a stray brace', { [`${R}.backend.path`]: '/{city}/}' }, `${R}.backend.path`, /stray brace/],
  ['an unclosed parameter', { [`${R}.backend.path`]: '/{city' }, `${R}.backend.path`, /stray brace/],
  ['a parameter without name', { [`${R}.backend.path`]: '/{}' }, `${R}.backend.path`, /without a name/],
  ['a parameter in the query', { [`${R}.backend.path`]: '/x?city={city}' }, `${R}.backend.path`, /in the query/],
  ['an undeclared parameter', { [`${R}.backend.path`]: '/{town}' }, `${R}.backend.path`, /\{town\}.*does not declare/],
  ['an optional parameter', input({ city: { type: 'string' } }), `${R}.backend.path`, /required does not list/],
  [
    'a list as parameter',
    input({ city: { type: 'array' } }, { required: ['city'] }),
    `${R}.backend.path`,
    /type cannot be part/,
  ],
  ['a climbing path', { [`${R}.backend.path`]: '/a/../{city}' }, `${R}.backend.path`, /normal form/],
  ['an encoded climb', { [`${R}.backend.path`]: '/a/%2e%2e/{city}' }, `${R}.backend.path`, /normal form/],
  ['a fragment', { [`${R}.backend.path`]: '/{city}#x' }, `${R}.backend.path`, /fragment/],
  [
    'a body binding on GET',
    { ...plain, [`${R}.backend.inputBindings`]: { body: ['city'] } },
    `${R}.backend.inputBindings.body`,
    /GET has no body/,
  ],
  [
    'a binding of an unknown property',
    { ...plain, [`${R}.backend.inputBindings`]: { query: ['town'] } },
    `${R}.backend.inputBindings.query`,
    /does not declare/,
  ],
  [
    'path bindings that miss a parameter',
    { [`${R}.backend.inputBindings`]: { path: [] } },
    `${R}.backend.inputBindings.path`,
    /exactly/,
  ],
  ['a description with a tag alphabet', { [`${R}.description`]: 'nice\u{e0041}' }, `${R}.description`, /invisible/],
  ['a description with a control character', { [`${R}.description`]: 'a\u0007b' }, `${R}.description`, /control/],
];

for (const [title, rows] of Object.entries({ SHAPE, HOSTS, MONEY, RELEASE, OPERATION }))
  describe(`start-up refuses (${title.toLowerCase()})`, () => {
    for (const [rule, changes, path, message] of rows)
      it(rule, () => {
        const found = problems(changes);
        const problem = found.find((candidate) => candidate.path === path);
        assert.ok(problem, `no problem at ${path}, but: ${JSON.stringify(found)}`);
        assert.match(problem.message, message);
      });
  });

describe('what start-up accepts', () => {
  const ACCEPTED: readonly (readonly [string, Changes])[] = [
    ['the smallest paid configuration', {}],
    ['a complete mainnet configuration', MAINNET],
    ['a price with spare zeros', { [`${R}.pricing.amount`]: '0.010000000' }],
    ['a payee in lower case', { [`${X}.payTo`]: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' }],
    ['the declared currency', { [`${X}.currency`]: 'usd', [`${R}.pricing.currency`]: 'usd' }],
    [
      'a merchant outside the pod when asked',
      { 'backend.baseUrl': 'http://10.0.0.1', 'backend.allowNonLoopback': true },
    ],
    ['the other loopback spellings', { 'backend.baseUrl': 'http://[::1]:3000/base/' }],
    ['localhost', { 'backend.baseUrl': 'http://localhost:3000' }],
    ['any loopback address', { 'backend.baseUrl': 'http://127.255.255.254' }],
    ['redis with replicas', { storage: { redis: { url: 'redis://x' }, replicas: 3 } }],
    ['a free gateway without payments', { payments: undefined, [`${R}.pricing`]: { type: 'free' } }],
    ['a newline in a description', { [`${R}.description`]: 'two\nlines\n' }],
    ['fronts that are not mounted beside one that is', { [`${R}.expose`]: ['mcp', 'http', 'a2a'] }],
  ];
  for (const [title, changes] of ACCEPTED) it(title, () => assert.deepEqual(problems(changes), []));
});

describe('every numeric limit', () => {
  const LIMITS: readonly (readonly [path: string, low: number, high: number])[] = [
    ['server.port', 0, 65535],
    ['server.trustProxy', 0, 8],
    ['storage.eventsMaxLength', 100, 1_000_000],
    ['storage.receiptsMaxLength', 100, 1_000_000],
    ['limits.maxInFlight', 1, 100_000],
    ['limits.maxStreams', 1, 1_024],
    [`${X}.maxTimeoutSeconds`, 10, 3_600],
    [`${R}.backend.timeoutMs`, 1, 120_000],
    [`${R}.backend.maxResponseBytes`, 1, 104_857_600],
  ];
  for (const [path, low, high] of LIMITS)
    it(`${path} is ${low} to ${high}, and no further`, () => {
      for (const value of [low, high]) assert.deepEqual(problems({ [path]: value }), []);
      for (const value of [low - 1, high + 1, low + 0.5]) {
        const [problem] = problems({ [path]: value });
        assert.equal(problem?.path, path);
        assert.match(problem.message, /must be .*\(\d+ to \d+\)/);
      }
    });
  it('text limits hold on both sides', () => {
    for (const [path, length] of [
      [`${R}.description`, 2_000],
      [`${R}.name`, 200],
      ['merchant.id', 64],
      ['server.adminToken', 512],
    ] as const) {
      assert.deepEqual(problems({ [path]: long(length) }), []);
      assert.equal(problems({ [path]: long(length + 1) })[0]?.path, path);
    }
  });
});

describe('one run names every problem', () => {
  it('of all sections at once, broken shapes and broken rules alike', () => {
    const found = problems({
      'merchant.id': '',
      'server.port': 'many',
      'backend.baseUrl': 'http://10.0.0.1',
      'storage.replicas': 2,
      [`${X}.payTo`]: '0x0',
      [`${R}.pricing.type`]: 'auction',
      'resources.second': { name: 'x', backend: { method: 'GET', path: 'no-slash' }, pricing: { type: 'free' } },
      'limits.maxStreems': 1,
    }).map(({ path }) => path);
    for (const path of [
      'merchant.id',
      'server.port',
      'backend.baseUrl',
      'storage.replicas',
      `${X}.payTo`,
      `${R}.pricing.type`,
      'resources.second.backend.path',
      'limits.maxStreems',
    ])
      assert.ok(found.includes(path), `${path} is not in ${found}`);
  });
  it('each with a path of its own', () => {
    const paths = problems({ merchant: 5, storage: 'x', resources: [] }).map(({ path }) => path);
    assert.deepEqual(paths.toSorted(), ['merchant', 'resources', 'storage']);
  });
  it('keeps mounted fronts only', () =>
    assert.deepEqual(load({ [`${R}.expose`]: ['a2a', 'http'] }).resources[0]?.exposedVia, ['http']));
});
