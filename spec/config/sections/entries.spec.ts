import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { configWarnings, storeLossSummary } from '../../../src/config/warnings.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { AMOY, type Changes, EURO, load, PAYEE, problems, SEPOLIA } from '../document/document.ts';
import { asking } from './ap2.ts';

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

const BASE = {
  ...{ network: 'base', payTo: PAYEE, allowMainnet: true, rpcUrl: 'https://rpc.example' },
  facilitator: { mode: 'remote', url: 'https://base.example' },
};
const KEYS = [`0x${'1'.repeat(64)}`, `0x${'3'.repeat(64)}`] as const;
const own = (privateKey: string) => ({ rpcUrl: 'https://rpc.example', facilitator: { mode: 'local', privateKey } });
const REDIS: Changes = { storage: { redis: { url: 'redis://10.0.0.5:6379' } } };

const several = (entries: readonly unknown[], more: Changes = {}): Changes => ({ 'payments.x402': entries, ...more });
const priced = (pricing: unknown): Changes => ({ 'resources.report.pricing': pricing });
const amounts = (prices: Changes): Changes => priced({ type: 'fixed', amounts: prices });

describe('a list under payments.x402', () => {
  it('of one entry is the entry', () => {
    assert.deepEqual(load(several([SEPOLIA])), load({}));
    assert.deepEqual(load({}).alternatives, []);
  });

  it('has its other entries beside the first, each as it is alone, in its short or its long form', () => {
    const free = priced({ type: 'free' });
    const [first, ...others] = [SEPOLIA, AMOY, EURO].map((entry) => load(several([entry], free)).x402);
    const { x402, alternatives } = load(several([SEPOLIA, AMOY, EURO], free));
    assert.deepEqual([x402, alternatives], [first, others]);
    assert.deepEqual(
      alternatives.map(({ network, asset, currencies, offered }) => [network, asset, currencies, offered]),
      [
        ['eip155:80002', '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', ['USDC'], true],
        ['eip155:84532', EURO.asset, ['EURC', 'Euro Coin'], true],
      ],
    );
  });

  it('has the settings of the buyer’s token in its first entry, for all of them', () => {
    const secrets = ['s'.repeat(32)];
    const first = { ...SEPOLIA, buyerTokenSecrets: secrets, keepAnswerSeconds: 700 };
    const [other] = load(several([first, AMOY])).alternatives;
    assert.deepEqual([other?.buyerTokenSecrets, other?.keepAnswerSeconds], [secrets, 700]);
  });

  it('takes secrets of each entry out of mounted files, and masks them', async () => {
    const folder = await temporaryDirectory(ends, 'acg-entries-');
    const file = join(folder, 'key');
    writeFileSync(file, KEYS[1]);
    const polygon = { ...BASE, network: 'polygon', ...own(`\${file:${file}}`) };
    const { alternatives, secrets } = load(several([BASE, polygon], REDIS));
    assert.deepEqual(alternatives[0]?.facilitator, { mode: 'local', privateKey: KEYS[1] });
    assert.ok(secrets.includes(KEYS[1]));
    const [written, ...more] = problems(several([BASE, { ...polygon, ...own(KEYS[1]) }], REDIS));
    assert.deepEqual([written?.path, more], ['payments.x402[1].facilitator.privateKey', []]);
  });

  it('is warned of by entry', () => {
    const facilitator = { mode: 'remote', url: 'http://amoy.example' };
    const plain = { ...AMOY, facilitator, rpcUrl: 'http://rpc.example' };
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
  it('may not take test money beside real money', () => {
    const message = /^must not stand beside that of payments\.x402\[0\]: one of them has real money/;
    for (const other of [AMOY, { ...AMOY, network: 'local', ...own(KEYS[0]), rpcUrl: 'http://127.0.0.1:8545' }])
      for (const entries of [[BASE, other], [BASE, other].toReversed()]) {
        const found = problems(several(entries, REDIS));
        assert.match(found.find(({ path }) => path === 'payments.x402[1].network')?.message ?? '', message);
      }
  });

  it('may have a relayer key of its own network, or a key of its own', () => {
    const LOCAL = { ...SEPOLIA, ...own(KEYS[0]) };
    assert.equal(load(several([LOCAL, { ...AMOY, ...own(KEYS[0]) }])).alternatives.length, 1);
    assert.equal(load(several([LOCAL, { ...EURO, ...own(KEYS[1]) }])).alternatives.length, 1);
  });
});

describe('a price beside several entries', () => {
  const DOLLAR = { amount: '0.01', currency: 'USDC', units: 10_000n };
  const token = (asset: string, assetName: string, assetDecimals: number) => ({
    ...{ asset: `0x${asset.repeat(40)}`, assetName, assetVersion: '1', assetDecimals },
  });
  const FINE = { ...AMOY, ...token('5', 'Fine', 18), currency: 'USDC' };
  const LOCAL = { network: 'local', payTo: PAYEE };
  const OTHER = { ...LOCAL, ...token('6', 'Other', 3), ...own(KEYS[0]), rpcUrl: 'http://127.0.0.1:8545' };
  const GONE = { offered: false };
  const ROWS: readonly (readonly [rule: string, entries: readonly Changes[], pricing: Changes, price: object])[] = [
    [
      'joins each entry whose token has its currency, with the decimals of that',
      [SEPOLIA, FINE, EURO],
      {},
      { ...DOLLAR, others: [{ ...DOLLAR, units: 10n ** 16n, entry: 1 }] },
    ],
    ['is that of a further entry where the first has another token', [EURO, SEPOLIA], {}, { ...DOLLAR, entry: 1 }],
    [
      'has an amount for each currency, in the order of the entries, also of one name on two networks',
      [SEPOLIA, EURO, { ...AMOY, currency: 'AMOY' }, FINE],
      amounts({ AMOY: '0.03', 'Euro Coin': '0.02', USDC: '0.01' }),
      {
        ...DOLLAR,
        others: [
          { amount: '0.02', currency: 'Euro Coin', units: 2n, entry: 1 },
          { amount: '0.03', currency: 'AMOY', units: 30_000n, entry: 2 },
          { ...DOLLAR, units: 10n ** 16n, entry: 3 },
        ],
      },
    ],
    [
      'is offered in offered entries alone, and known in the others',
      [{ ...SEPOLIA, ...GONE }, EURO],
      amounts({ EURC: '0.02', USDC: '0.01' }),
      { amount: '0.02', currency: 'EURC', units: 2n, entry: 1, ended: [DOLLAR] },
    ],
    [
      'is not known in an entry that is not offered and cannot hold it',
      [SEPOLIA, { ...EURO, ...GONE }],
      amounts({ EURC: '0.001', USDC: '0.01' }),
      DOLLAR,
    ],
    [
      'in dollars is that of each dollar',
      [EURO, AMOY, SEPOLIA],
      priced('$0.01'),
      { ...DOLLAR, entry: 1, others: [{ ...DOLLAR, entry: 2 }] },
    ],
    [
      'in dollars is by its name where there is no other',
      [{ ...LOCAL, currency: 'TUSD' }, OTHER, SEPOLIA],
      priced('$0.01'),
      {
        ...{ ...DOLLAR, currency: 'TUSD' },
        others: [
          { ...DOLLAR, currency: 'Other', units: 10n, entry: 1 },
          { ...DOLLAR, entry: 2 },
        ],
      },
    ],
  ];
  for (const [rule, entries, pricing, price] of ROWS)
    it(rule, () =>
      assert.deepEqual(load(several(entries, pricing)).resources[0]?.pricing, { type: 'fixed', ...price }),
    );

  it('with a mandate is counted in the minor units of each currency', () => {
    const config = load({ ...asking(), ...several([SEPOLIA, EURO]) });
    const exponents = config.authorization.ap2?.profile.exponents;
    assert.deepEqual([exponents?.get('USDC'), exponents?.get('EURC'), exponents?.get('Euro Coin')], [6, 2, 2]);
    const large = '90071992547409.93';
    const found = problems({ ...asking(), ...several([SEPOLIA, EURO]), ...amounts({ USDC: '1', EURC: large }) });
    assert.deepEqual([found[0]?.path, found.length], ['resources.report.pricing.amounts.EURC', 1]);
  });
});
