import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { type Changes, load, MAINNET, PAYEE, problems } from './document/document.ts';
import { type Row, refusalsOf, refuses } from './refusals.ts';

const X = 'payments.x402';
const R = 'resources.report';
const input = (properties: object, more: object = {}) => ({
  [`${R}.inputSchema`]: { type: 'object', properties, ...more },
});
/** A resource without path parameter, so that only the named rule is broken. */
const plain: Changes = { [`${R}.backend.path`]: '/reports' };

const MONEY: readonly Row[] = [
  ['a price with an exponent', `${R}.pricing.amount`, '1e3', /not a decimal number/],
  ['a negative price', `${R}.pricing.amount`, '-1', /not a decimal number/],
  ['a price without payments', { payments: undefined }, `${R}.pricing`, /needs payments.x402/],
  ['a priced resource without payment method', `${R}.payments`, [], /must have x402/],
  [
    'a free resource with payment method',
    { [`${R}.pricing`]: { type: 'free' }, [`${R}.payments`]: ['x402'] },
    `${R}.payments`,
    /must be empty/,
  ],
  ['a network that is no EVM', `${X}.network`, 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', /EVM network/],
  [
    'a local facilitator without node',
    { [`${X}.facilitator`]: { mode: 'local', privateKey: `0x${'1'.repeat(64)}` } },
    `${X}.rpcUrl`,
    /settles through a node/,
  ],
  ['test money for the TEST buyer', `${X}.payTo`, TEST_BUYER.address, /the key of this one is public/],
  [
    'a relayer with the key of the TEST buyer',
    {
      [`${X}.rpcUrl`]: 'https://rpc.example',
      [`${X}.facilitator`]: { mode: 'local', privateKey: TEST_BUYER.key },
    },
    `${X}.facilitator.privateKey`,
    /must be a key of yours: this one is public, for development on eip155:31337/,
  ],
  ['a node over another scheme', `${X}.rpcUrl`, 'ws://127.0.0.1', /absolute http/],
  [
    'a further node over another scheme',
    { [`${X}.rpcUrls`]: ['https://rpc.example', 'ws://127.0.0.1'] },
    `${X}.rpcUrls[1]`,
    /absolute http/,
  ],
  [
    '402 relayed from the merchant',
    { [`${R}.pricing`]: { type: 'free' }, [`${R}.backend.relayStatuses`]: [402] },
    `${R}.backend.relayStatuses`,
    /402/,
  ],
  [
    '402 sold as an answer of the merchant',
    { [`${R}.backend.relayStatuses`]: { sold: [404, 402] } },
    `${R}.backend.relayStatuses.sold`,
    /402/,
  ],
  [
    'a status relayed unpaid of a call that is paid before',
    { [`${R}.backend.relayStatuses`]: { unpaid: [409] } },
    `${R}.backend.relayStatuses.unpaid`,
    /^needs pricing\.settle: after: the payment is settled before the backend answers; set that, or move these statuses to sold$/,
  ],
  [
    'sold statuses of a free resource',
    { [`${R}.pricing`]: { type: 'free' }, [`${R}.backend.relayStatuses`]: { sold: [404], unpaid: [409] } },
    `${R}.backend.relayStatuses`,
    /^must be a list for a free resource: \[404,409\]$/,
  ],
];

/** Each on top of a resource that is settled after the call, and complete. */
const SETTLED_AFTER: Changes = {
  [`${R}.pricing.settle`]: 'after',
  'storage.sealing': { keys: [{ id: 'k1', key: Buffer.alloc(32, 1).toString('base64') }] },
};
const posting = (more: Changes = {}): Changes => ({ ...plain, [`${R}.backend.method`]: 'POST', ...more });
const SETTLED_AFTER_ROWS: readonly Row[] = [
  [
    'a status that is both paid for and not',
    { [`${R}.backend.relayStatuses`]: { sold: [404, 410], unpaid: [409, 410] } },
    `${R}.backend.relayStatuses`,
    /^must not have 410 in both sold and unpaid; keep one$/,
  ],
  [
    'a POST that may do something for nothing',
    posting(),
    `${R}.pricing.settle`,
    /^cannot be after: a POST may do something that is not paid in the end; set backend\.idempotent or backend\.safeUnpaid where that does no harm$/,
  ],
  [
    'a PATCH likewise',
    { ...plain, [`${R}.backend.method`]: 'PATCH' },
    `${R}.pricing.settle`,
    /^cannot be after: a PATCH/,
  ],
  [
    'answers that would wait unsealed',
    { 'storage.sealing': undefined },
    `${R}.pricing.settle`,
    /^needs storage\.sealing\.keys: answers wait in the store until they are paid; make a key with: openssl rand -base64 32$/,
  ],
  [
    'a window that the call and its settlement do not fit into',
    { [`${X}.maxTimeoutSeconds`]: 89 },
    `${R}.pricing.settle`,
    /^needs payments\.x402\.maxTimeoutSeconds of at least 90: the call may take 10000 ms, and then its payment is settled$/,
  ],
  [
    'a slower call, in seconds that are begun',
    { [`${R}.backend.timeoutMs`]: 40_001 },
    `${R}.pricing.settle`,
    /of at least 121: the call may take 40001 ms/,
  ],
  ['an order of a free resource', { [`${R}.pricing`]: { type: 'free', settle: 'after' } }, `${R}.pricing.settle`, /./],
];

/** Each on top of a complete mainnet configuration. */
const MAINNET_ROWS: readonly Row[] = [
  ['real money without node', `${X}.rpcUrl`, undefined, /on a mainnet every payment/],
  ['real money in sqlite', { storage: { sqlite: { path: 'x.db' } } }, 'storage', /redis on a mainnet/],
  ['real money for another token', `${X}.asset`, PAYEE.replace('1', '2'), /canonical USDC/],
  [
    'real money for a tutorial account',
    `${X}.payTo`,
    '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    /an account of yours: the key of this one is public/,
  ],
  [
    'a mainnet key in the document',
    { ...MAINNET, [`${X}.facilitator`]: { mode: 'local', privateKey: `0x${'1'.repeat(64)}` } },
    `${X}.facilitator.privateKey`,
    /mounted file/,
  ],
];

const ADAPTERS: readonly Row[] = [
  ['a resource with http switched off', { 'protocols.http.enabled': false }, `${R}.expose`, /at least one adapter/],
];

const OPERATION: readonly Row[] = [
  ['a path with a host', `${R}.backend.path`, '//{city}/x', /begins with one \//],
  ['a stray brace', `${R}.backend.path`, '/{city}/}', /stray brace/],
  ['an optional parameter', `${R}.backend.path`, '/{city?}', /has \{city\?\}: a parameter is written \{city\}/],
  ['a parameter in two braces', `${R}.backend.path`, '/{{city}}', /has \{\{city\}\}: .* written \{city\}/],
  ['a parameter in angle brackets', `${R}.backend.path`, '/<int:city>', /has <int:city>: .* written \{city\}/],
  ['a parameter with a converter', `${R}.backend.path`, '/{city:path}', /does not declare; write \{city\}/],
  ['an unclosed parameter', `${R}.backend.path`, '/{city', /stray brace/],
  ['a parameter without name', `${R}.backend.path`, '/{}', /without a name/],
  ['a parameter in the query', `${R}.backend.path`, '/x?city={city}', /in the query/],
  [
    'a list as parameter',
    input({ city: { type: 'array' } }, { required: ['city'] }),
    `${R}.backend.path`,
    /type cannot be part/,
  ],
  ['a climbing path', `${R}.backend.path`, '/a/../{city}', /normal form/],
  ['an encoded climb', `${R}.backend.path`, '/a/%2e%2e/{city}', /normal form/],
  ['a fragment', `${R}.backend.path`, '/{city}#x', /fragment/],
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
    'a whole body of an unknown property',
    { ...plain, [`${R}.backend.method`]: 'POST', [`${R}.backend.inputBindings`]: { body: 'town' } },
    `${R}.backend.inputBindings.body`,
    /names town, which inputSchema.properties does not declare/,
  ],
  [
    'a whole body on GET',
    { ...plain, [`${R}.backend.inputBindings`]: { body: 'city' } },
    `${R}.backend.inputBindings.body`,
    /GET has no body/,
  ],
  [
    'a style of what is not in the query',
    { ...plain, [`${R}.backend.inputBindings`]: { query: [], styles: { city: 'comma' } } },
    `${R}.backend.inputBindings.styles.city`,
    /neither in query nor a field of a form/,
  ],
  ['a media type on GET', `${R}.backend.contentType`, 'application/merge-patch+json', /GET has no body/],
  [
    'path bindings that miss a parameter',
    { [`${R}.backend.inputBindings`]: { path: [] } },
    `${R}.backend.inputBindings.path`,
    /exactly/,
  ],
  ['a description with a tag alphabet', `${R}.description`, 'nice\u{e0041}', /invisible/],
  ['a description with a control character', `${R}.description`, 'a\u0007b', /control/],
];

for (const [title, rows] of Object.entries({ MONEY, ADAPTERS, OPERATION }))
  describe(`start-up refuses (${title.toLowerCase()})`, () => refuses(rows));

describe('start-up refuses (settled after the call)', () =>
  refusalsOf((changes) => ({ ...SETTLED_AFTER, ...changes }), [])(SETTLED_AFTER_ROWS));
describe('start-up accepts (settled after the call)', () => {
  const fine: readonly (readonly [string, Changes])[] = [
    ['a GET', {}],
    ['a PUT', { ...plain, [`${R}.backend.method`]: 'PUT' }],
    ['a DELETE', { ...plain, [`${R}.backend.method`]: 'DELETE' }],
    ['a POST that may be repeated', posting({ [`${R}.backend.idempotent`]: true })],
    ['a POST that does no harm unpaid', posting({ [`${R}.backend.safeUnpaid`]: true })],
    ['the shortest window', { [`${X}.maxTimeoutSeconds`]: 90 }],
    ['a POST whose money moves first', posting({ [`${R}.pricing.settle`]: 'before', 'storage.sealing': undefined })],
  ];
  for (const [what, changes] of fine) it(what, () => assert.deepEqual(problems({ ...SETTLED_AFTER, ...changes }), []));

  it('and before is what is left out', () => {
    const pricingOf = (changes: Changes) => load(changes).resources[0]?.pricing;
    assert.deepEqual(pricingOf({ [`${R}.pricing.settle`]: 'before' }), pricingOf({}));
    assert.partialDeepStrictEqual(pricingOf(SETTLED_AFTER), { settle: 'after' });
  });
});
describe('start-up refuses (mainnet)', () => refusalsOf((changes) => ({ ...MAINNET, ...changes }), [])(MAINNET_ROWS));
