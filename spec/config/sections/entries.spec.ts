import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { configWarnings, storeLossSummary } from '../../../src/config/warnings.ts';
import { LOCAL_TOKEN } from '../../../src/payments/pricing/networks.ts';
import type { X402Config } from '../../../src/payments/x402/wire/settings.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import {
  baseDocument,
  type Changes,
  load,
  PAYEE,
  placedProblems,
  problems,
  SETTLED_AFTER,
} from '../document/document.ts';
import { asking } from './ap2.ts';

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

const SEPOLIA = (baseDocument()['payments'] as { readonly x402: Changes }).x402;
const AMOY = {
  network: 'polygon-amoy',
  payTo: PAYEE,
  facilitator: { mode: 'remote', url: 'https://amoy.example' },
};
/** A euro on the network of the first entry. */
const EURO = { ...SEPOLIA, asset: `0x${'2'.repeat(40)}`, assetName: 'Euro Coin', currency: 'EURC', assetDecimals: 2 };
const BASE = {
  ...{ network: 'base', payTo: PAYEE, allowMainnet: true, rpcUrl: 'https://rpc.example' },
  facilitator: { mode: 'remote', url: 'https://base.example' },
};
const KEYS = [`0x${'1'.repeat(64)}`, `0x${'3'.repeat(64)}`] as const;
const own = (privateKey: string) => ({
  rpcUrl: 'https://rpc.example',
  facilitator: { mode: 'local', privateKey },
});

const several = (entries: readonly unknown[], more: Changes = {}): Changes => ({ 'payments.x402': entries, ...more });
const priced = (pricing: unknown): Changes => ({ 'resources.report.pricing': pricing });
const amounts = (prices: Changes): Changes => priced({ type: 'fixed', amounts: prices });
/** The price of the resource of the base document. */
const priceOf = (changes: Changes) => load(changes).resources[0]?.pricing;

describe('a list under payments.x402', () => {
  it('of one entry is the entry', () => {
    assert.deepEqual(load(several([SEPOLIA])), load({}));
    assert.deepEqual(load({}).alternatives, []);
  });

  it('has its other entries beside the first, each in its short or its long form', () => {
    const { x402, alternatives } = load(several([SEPOLIA, AMOY, EURO]));
    const facts = ({ network, chainId, asset, assetName, currencies, offered, mode, facilitator }: X402Config) => [
      ...[network, chainId, asset, assetName, currencies, offered, mode],
      facilitator.mode === 'remote' ? facilitator.url : '',
    ];
    assert.deepEqual([...(x402 === undefined ? [] : [x402]), ...alternatives].map(facts), [
      [
        ...['eip155:84532', 84_532, '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC', ['USDC'], true, 'testnet'],
        'https://facilitator.example',
      ],
      [
        ...['eip155:80002', 80_002, '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', 'USDC', ['USDC'], true, 'testnet'],
        'https://amoy.example',
      ],
      [
        ...['eip155:84532', 84_532, `0x${'2'.repeat(40)}`, 'Euro Coin', ['EURC', 'Euro Coin'], true, 'testnet'],
        'https://facilitator.example',
      ],
    ]);
  });

  it('has the settings of the buyer’s token in its first entry, for all of them', () => {
    const secrets = ['s'.repeat(32)];
    const first = { ...SEPOLIA, buyerTokenSecrets: secrets, keepAnswerSeconds: 700 };
    const { alternatives } = load(several([first, AMOY]));
    assert.deepEqual(
      alternatives.map(({ buyerTokenSecrets, keepAnswerSeconds }) => [buyerTokenSecrets, keepAnswerSeconds]),
      [[secrets, 700]],
    );
  });

  it('takes secrets of each entry out of mounted files, and masks them', async () => {
    const folder = await temporaryDirectory(ends, 'acg-entries-');
    const file = join(folder, 'key');
    writeFileSync(file, KEYS[1]);
    const polygon = { ...BASE, network: 'polygon', ...own(`\${file:${file}}`) };
    const redis = { storage: { redis: { url: 'redis://10.0.0.5:6379' } } };
    const { alternatives, secrets } = load(several([BASE, polygon], redis));
    assert.deepEqual(alternatives[0]?.facilitator, { mode: 'local', privateKey: KEYS[1] });
    assert.ok(secrets.includes(KEYS[1]));
    const written = problems(several([BASE, { ...polygon, ...own(KEYS[1]) }], redis));
    assert.deepEqual(
      written.map(({ path }) => path),
      ['payments.x402[1].facilitator.privateKey'],
    );
  });

  it('may have a local chain beside a testnet', () => {
    const { x402, alternatives } = load(several([{ network: 'local', payTo: PAYEE }, AMOY], priced('$0.01')));
    assert.deepEqual([x402?.mode, alternatives[0]?.mode], ['local', 'testnet']);
  });

  it('is warned of by entry', () => {
    const plain = {
      ...AMOY,
      facilitator: { mode: 'remote', url: 'http://amoy.example' },
      rpcUrl: 'http://rpc.example',
    };
    const warnings = configWarnings(load(several([SEPOLIA, plain]))).filter((line) => line.startsWith('payments'));
    assert.deepEqual(
      warnings.map((line) => line.replace(/:.*/, '')),
      ['payments.x402[1].facilitator.url', 'payments.x402[1].rpcUrl'],
    );
  });

  it('tells of each entry how a lost payment ends', () => {
    const kept = { ...AMOY, rpcUrl: 'https://rpc.example', payToExclusive: true };
    assert.equal(
      storeLossSummary(load(several([{ ...SEPOLIA, onStoreLoss: 'refuse' }, kept]))),
      'payments.x402[0]: refused with 409 (onStoreLoss: refuse); payments.x402[1]: delivered once, because payTo is this store’s alone (payToExclusive: true)',
    );
  });
});

describe('an entry that is refused', () => {
  const LOCAL = { ...SEPOLIA, ...own(KEYS[0]) };
  const ROWS: readonly (readonly [rule: string, entries: readonly unknown[], path: string, message: RegExp])[] = [
    ['no entry', [], '', /^must be x402 version 2.*list of 1 to 8 of them; it is empty$/],
    ['a ninth entry', Array.from({ length: 9 }, () => SEPOLIA), '', /list of 1 to 8 of them; at most 8$/],
    ['a text', [SEPOLIA, 'base'], '[1]', /^must be one way to be paid: a mapping of keys to values$/],
    ['a list in it', [SEPOLIA, [AMOY]], '[1]', /^must be one way to be paid: a mapping/],
    ['an unknown key', [SEPOLIA, { ...AMOY, asets: '0x1' }], '[1].asets', /is not a known key; did you mean asset\?/],
    ['a missing key', [SEPOLIA, { ...AMOY, payTo: undefined }], '[1].payTo', /^is missing: the address that is paid/],
    ['an unknown name', [SEPOLIA, { ...AMOY, network: 'amoi' }], '[1].network', /^must be a network such as/],
    ['an unknown network', [SEPOLIA, { ...AMOY, network: 'eip155:5' }], '[1].network', /^is unknown; known: ethereum/],
    ['no facilitator', [SEPOLIA, { ...AMOY, facilitator: undefined }], '[1].facilitator', /^is missing: mode remote/],
    [
      'a key of another mode',
      [
        SEPOLIA,
        { ...LOCAL, asset: EURO.asset, facilitator: { ...own(KEYS[0]).facilitator, url: 'https://a.example' } },
      ],
      '[1].facilitator.url',
      /^is not used with mode: local/,
    ],
    ['a checksum', [SEPOLIA, { ...AMOY, payTo: `0x${'aB'.repeat(20)}` }], '[1].payTo', /valid checksum/],
    ['a rule behind the schema', [SEPOLIA, { ...AMOY, confirm: 'receipt' }], '[1].confirm', /^must be facilitator, or/],
    [
      'a fallback twice',
      [SEPOLIA, { ...AMOY, facilitator: { ...AMOY.facilitator, fallbacks: [{ url: 'https://amoy.example' }] } }],
      '[1].facilitator.fallbacks[0].url',
      /^is there already/,
    ],
    ['a placeholder', [SEPOLIA, { ...AMOY, payTo: `\${PAYEE}` }], '[1].payTo', /needs the environment variable PAYEE/],
    [
      'secrets of buyers’ tokens',
      [SEPOLIA, { ...AMOY, buyerTokenSecrets: ['s'.repeat(32)] }],
      '[1].buyerTokenSecrets',
      /^holds for all entries; move it to payments\.x402\[0\]$/,
    ],
    [
      'the time of kept answers',
      [SEPOLIA, { ...AMOY, keepAnswerSeconds: 60 }],
      '[1].keepAnswerSeconds',
      /^holds for all entries; move it to payments\.x402\[0\]$/,
    ],
    [
      'a token twice',
      [SEPOLIA, AMOY, { ...AMOY, payTo: `0x${'4'.repeat(40)}` }],
      '[2].asset',
      /^is the token of payments\.x402\[1\] already/,
    ],
    [
      'a relayer key twice on a network',
      [LOCAL, { ...EURO, ...own(KEYS[0]) }],
      '[1].facilitator.privateKey',
      /^must be another key than that of payments\.x402\[0\].*same nonces/,
    ],
  ];
  for (const [rule, entries, path, message] of ROWS)
    it(`names its path: ${rule}`, () => {
      const found = problems(several(entries));
      const problem = found.find((one) => one.path === `payments.x402${path}`);
      assert.ok(problem !== undefined, JSON.stringify(found));
      assert.match(problem.message, message);
    });

  it('names its line', () => {
    const text = `
version: 1
merchant: { name: Shop }
backend: { baseUrl: http://127.0.0.1:3000 }
payments:
  x402:
    - { network: base-sepolia, payTo: "${PAYEE}" }
    - network: polygon-amoy
      payTo: "0x1"
      facilitator: { mode: remote, url: https://amoy.example }
resources: { report: { backend: { method: GET, path: /report }, pricing: "$0.01" } }
`;
    const found = placedProblems(text);
    assert.deepEqual(
      found.map(({ path, place }) => [path, place?.line, place?.column]),
      [['payments.x402[1].payTo', 9, 7]],
    );
  });

  it('may not take test money beside real money', () => {
    const message = /^must not stand beside that of payments\.x402\[0\]: one of them has real money/;
    for (const other of [AMOY, { ...AMOY, network: 'local', ...own(KEYS[0]), rpcUrl: 'http://127.0.0.1:8545' }])
      for (const entries of [
        [BASE, other],
        [other, BASE],
      ]) {
        const found = problems(several(entries, { storage: { redis: { url: 'redis://10.0.0.5:6379' } } }));
        assert.match(found.find(({ path }) => path === 'payments.x402[1].network')?.message ?? '', message);
      }
  });

  it('may have a relayer key of its own network, or a key of its own', () => {
    assert.equal(load(several([LOCAL, { ...AMOY, ...own(KEYS[0]) }])).alternatives.length, 1);
    assert.equal(load(several([LOCAL, { ...EURO, ...own(KEYS[1]) }])).alternatives.length, 1);
  });
});

describe('a price beside several entries', () => {
  const AMOY_18 = {
    ...AMOY,
    asset: `0x${'5'.repeat(40)}`,
    assetName: 'Fine',
    assetVersion: '1',
    assetDecimals: 18,
    currency: 'USDC',
  };

  it('joins each entry whose token has its currency, with the decimals of that', () => {
    assert.deepEqual(priceOf(several([SEPOLIA, AMOY_18, EURO])), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n },
      others: [{ amount: '0.01', currency: 'USDC', units: 10n ** 16n, entry: 1 }],
    });
  });

  it('is that of a further entry where the first has another token', () => {
    assert.deepEqual(priceOf(several([EURO, SEPOLIA])), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n, entry: 1 },
    });
  });

  it('has an amount for each currency, in the order of the entries', () => {
    const prices = amounts({ 'Euro Coin': '0.02', USDC: '0.01' });
    assert.deepEqual(priceOf(several([SEPOLIA, EURO, AMOY], prices)), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n },
      others: [
        { amount: '0.02', currency: 'Euro Coin', units: 2n, entry: 1 },
        { amount: '0.01', currency: 'USDC', units: 10_000n, entry: 2 },
      ],
    });
  });

  it('may differ between two networks whose tokens have one name', () => {
    const prices = amounts({ USDC: '0.01', AMOY: '0.02' });
    assert.deepEqual(priceOf(several([SEPOLIA, { ...AMOY, currency: 'AMOY' }], prices)), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n },
      others: [{ amount: '0.02', currency: 'AMOY', units: 20_000n, entry: 1 }],
    });
  });

  it('is offered in offered entries alone, and known in the others where it can be charged', () => {
    const prices = amounts({ EURC: '0.02', USDC: '0.01' });
    assert.deepEqual(priceOf(several([{ ...SEPOLIA, offered: false }, EURO], prices)), {
      ...{ type: 'fixed', amount: '0.02', currency: 'EURC', units: 2n, entry: 1 },
      ended: [{ amount: '0.01', currency: 'USDC', units: 10_000n }],
    });
    const fine = amounts({ EURC: '0.001', USDC: '0.01' });
    assert.deepEqual(priceOf(several([SEPOLIA, { ...EURO, offered: false }], fine)), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n },
    });
  });

  it('in dollars is that of each dollar, by its name', () => {
    assert.deepEqual(priceOf(several([EURO, AMOY, SEPOLIA], priced('$0.01'))), {
      ...{ type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n, entry: 1 },
      others: [{ amount: '0.01', currency: 'USDC', units: 10_000n, entry: 2 }],
    });
    const local = { network: 'local', payTo: PAYEE, currency: 'TUSD' };
    const other = {
      ...local,
      asset: `0x${'6'.repeat(40)}`,
      assetName: 'Other',
      assetVersion: '1',
      assetDecimals: 3,
      ...own(KEYS[0]),
      rpcUrl: 'http://127.0.0.1:8545',
    };
    const withName = { ...other, currency: undefined };
    assert.deepEqual(priceOf(several([local, withName, SEPOLIA], priced('$0.01'))), {
      ...{ type: 'fixed', amount: '0.01', currency: 'TUSD', units: 10_000n },
      others: [
        { amount: '0.01', currency: 'Other', units: 10n, entry: 1 },
        { amount: '0.01', currency: 'USDC', units: 10_000n, entry: 2 },
      ],
    });
    assert.equal(load(several([local], priced('$0.01'))).x402?.asset, LOCAL_TOKEN.address);
  });

  const P = 'resources.report.pricing';
  const ROWS: readonly (readonly [rule: string, changes: Changes, path: string, message: RegExp])[] = [
    [
      'a currency of no entry',
      several([SEPOLIA, EURO], priced({ type: 'fixed', amount: '1', currency: 'GBP' })),
      `${P}.currency`,
      /^must be "USDC" or "EURC" or "Euro Coin"$/,
    ],
    [
      'a currency of no entry among amounts',
      several([SEPOLIA, EURO], amounts({ USDC: '1', GBP: '1' })),
      `${P}.amounts.GBP`,
      /^must be "USDC" or "EURC" or "Euro Coin"$/,
    ],
    [
      'a currency of no offered entry',
      several([SEPOLIA, { ...EURO, offered: false }], priced({ type: 'fixed', amount: '1', currency: 'EURC' })),
      `${P}.currency`,
      /^must be "USDC", or set payments\.x402\[0\]\.currency/,
    ],
    [
      'no offered entry',
      several([
        { ...SEPOLIA, offered: false },
        { ...EURO, offered: false },
      ]),
      'payments.x402[0].offered',
      /^must be true in one entry at least while a resource has a price/,
    ],
    [
      'the only entry not offered',
      { 'payments.x402.offered': false },
      'payments.x402.offered',
      /^must be true while a resource has a price/,
    ],
    [
      'one token by two names',
      several([SEPOLIA, EURO], amounts({ EURC: '1', 'Euro Coin': '2' })),
      `${P}.amounts["Euro Coin"]`,
      /^is EURC of payments\.x402\[1\] by another name; keep one$/,
    ],
    [
      'too many decimals for one of the entries',
      several([SEPOLIA, { ...EURO, currency: 'USDC' }], priced({ type: 'fixed', amount: '0.001', currency: 'USDC' })),
      `${P}.amount`,
      /more decimals than the asset \(2 of payments\.x402\[1\]\)$/,
    ],
    [
      'too many decimals among amounts',
      several([SEPOLIA, EURO], amounts({ EURC: '0.001', USDC: '1' })),
      `${P}.amounts.EURC`,
      /\(2 of payments\.x402\[1\]\)$/,
    ],
    ['nothing', amounts({ USDC: '0' }), `${P}.amounts.USDC`, /^must be more than zero/],
    ['no number', amounts({ USDC: 'one' }), `${P}.amounts.USDC`, /is not a decimal number/],
    ['no amounts', amounts({}), `${P}.amounts`, /^must be a mapping of currencies to decimal amounts/],
    ['a number without quotes', amounts({ USDC: 1 }), `${P}.amounts.USDC`, /^must be a decimal amount in quotes/],
    [
      'an amount beside amounts',
      priced({ type: 'fixed', amount: '1', amounts: { USDC: '1' } }),
      `${P}.amount`,
      /^is not used with amounts; remove it$/,
    ],
    [
      'a currency beside amounts',
      priced({ type: 'fixed', currency: 'USDC', amounts: { USDC: '1' } }),
      `${P}.currency`,
      /^is not used with amounts; remove it$/,
    ],
    [
      'a currency without an amount',
      priced({ type: 'fixed', currency: 'USDC' }),
      `${P}.amount`,
      /^is missing: a decimal amount in quotes/,
    ],
    [
      'amounts of what is free',
      priced({ type: 'free', amounts: { USDC: '1' } }),
      `${P}.amounts`,
      /^is not used with type: free; remove it$/,
    ],
    [
      'dollars without a dollar',
      several([EURO], priced('$0.01')),
      P,
      /\$ stands for USDC, and no entry of payments\.x402 has it$/,
    ],
    [
      'too little time to settle after the call in one of the entries',
      several([SEPOLIA, { ...AMOY, maxTimeoutSeconds: 10 }], SETTLED_AFTER),
      `${P}.settle`,
      /^needs payments\.x402\[1\]\.maxTimeoutSeconds of at least 90/,
    ],
  ];
  for (const [rule, changes, path, message] of ROWS)
    it(`is refused: ${rule}`, () => {
      const found = problems(changes);
      const problem = found.find((one) => one.path === path);
      assert.ok(problem !== undefined && found.length === 1, JSON.stringify(found));
      assert.match(problem.message, message);
    });

  it('with a mandate is counted in the minor units of each currency', () => {
    const config = load({ ...asking(), ...several([SEPOLIA, EURO]) });
    const exponents = config.authorization.ap2?.profile.exponents;
    assert.deepEqual([exponents?.get('USDC'), exponents?.get('EURC'), exponents?.get('Euro Coin')], [6, 2, 2]);
    const large = '90071992547409.93';
    const found = problems({ ...asking(), ...several([SEPOLIA, EURO]), ...amounts({ USDC: '1', EURC: large }) });
    assert.deepEqual(
      found.map(({ path }) => path),
      ['resources.report.pricing.amounts.EURC'],
    );
  });
});
