import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { KNOWN_NETWORKS, NETWORK_NAMES } from '../../src/payments/pricing/networks.ts';
import { ConfigError, problemLine } from '../../src/problems/problem.ts';
import { file, folder } from './files.ts';

const PAYEE = '0x1111111111111111111111111111111111111111';
const SHORT = `version: 1
merchant:
  name: Sock Shop
backend: { baseUrl: "http://127.0.0.1:3000" }
payments:
  x402:
    network: base-sepolia
    payTo: "${PAYEE}"
resources:
  search:
    backend: { method: GET, path: /search }
    pricing: "$0.01"
`;
const LONG = `version: 1
merchant: { id: sock-shop, name: Sock Shop, publicBaseUrl: "http://127.0.0.1:8402" }
backend: { baseUrl: "http://127.0.0.1:3000" }
storage: { sqlite: { path: sock-shop.db } }
payments:
  x402:
    network: eip155:84532
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    assetName: USDC
    assetVersion: "2"
    assetDecimals: 6
    payTo: "${PAYEE}"
    facilitator: { mode: remote, url: https://www.x402.org/facilitator }
resources:
  search:
    name: Search
    backend: { method: GET, path: /search }
    pricing: { type: fixed, amount: "0.01", currency: USDC }
`;

function changed(from: string | RegExp, to: string): string {
  const text = SHORT.replace(from, () => to);
  assert.notEqual(text, SHORT);
  return text;
}

describe('the short form of a configuration', () => {
  it('means the same as the long one', () => assert.deepEqual(parseConfig(SHORT, {}), parseConfig(LONG, {})));

  it('has its database beside the file', () => {
    const { storage } = loadConfig({ path: file('short.yaml', SHORT), env: {} });
    assert.deepEqual(storage.engine, { kind: 'sqlite', path: `${folder}/sock-shop.db` });
  });

  it('takes the store that the environment names', () =>
    assert.equal(parseConfig(SHORT, { REDIS_URL: 'redis://127.0.0.1:6379' }).storage.engine.kind, 'redis'));

  it('has the port of the server in its public address', () => {
    const { merchant } = parseConfig(`${SHORT}server: { port: 9000 }\n`, {});
    assert.equal(merchant.publicBaseUrl, 'http://127.0.0.1:9000');
  });

  it('leaves what is written', () => {
    const text = changed('name: Sock Shop', 'name: Sock Shop\n  id: socks\n  publicBaseUrl: https://socks.example');
    const { id, publicBaseUrl } = parseConfig(text, {}).merchant;
    assert.deepEqual([id, publicBaseUrl], ['socks', 'https://socks.example']);
  });

  it('calls a resource by its id', () => {
    const { resources } = parseConfig(changed('  search:', '  stock-quote_EUR:'), {});
    assert.equal(resources[0]?.name, 'Stock quote EUR');
  });

  it('gives away what is free', () =>
    assert.deepEqual(parseConfig(changed('"$0.01"', 'free'), {}).resources[0]?.pricing, { type: 'free' }));

  it('takes a price from the environment', () => {
    const { pricing } = parseConfig(changed('"$0.01"', `"\${PRICE}"`), { PRICE: '$1.50' }).resources[0] ?? {};
    assert.deepEqual(pricing, { type: 'fixed', amount: '1.50', currency: 'USDC', units: 1_500_000n });
  });

  it('sells on the local chain with nothing but its name', () => {
    const { x402 } = parseConfig(changed('base-sepolia', 'local'), {});
    assert.deepEqual(
      [x402?.mode, x402?.assetName, x402?.rpcUrls, x402?.facilitator.mode],
      ['local', 'Test USD', ['http://127.0.0.1:8545'], 'local'],
    );
  });

  for (const [name, network] of NETWORK_NAMES)
    it(`knows ${name} and its USDC`, () => {
      const { mode, usdc } = KNOWN_NETWORKS.get(network) ?? assert.fail(network);
      const named = SHORT.replace('base-sepolia', () => name);
      const others =
        '    rpcUrl: https://rpc.example\n    facilitator: { mode: remote, url: https://facilitator.example }\n';
      const money = `${others}${mode === 'mainnet' ? '    allowMainnet: true\n' : ''}resources:`;
      const text = name === 'local' ? named : named.replace('resources:', () => money);
      const { x402 } = parseConfig(text, { REDIS_URL: mode === 'mainnet' ? 'redis://127.0.0.1:6379' : '' });
      assert.equal(x402?.network, network);
      if (usdc !== undefined) assert.deepEqual([x402?.asset, x402?.assetName], [usdc.address, usdc.name]);
    });

  it('has the names of its networks in the schema', () => {
    const { examples, pattern } = schema.properties.payments.properties.x402.properties.network;
    assert.deepEqual(examples, [...NETWORK_NAMES.keys()]);
    assert.ok(examples.every((name) => new RegExp(pattern).test(name)));
  });
});

/** Title, what is written in the place of what, and all that is said. */
type Mistake = readonly [title: string, from: string | RegExp, to: string, said: readonly string[]];

const MISTAKES: readonly Mistake[] = [
  [
    'a network by its title',
    'base-sepolia',
    'Base Sepolia',
    [
      '7:5 payments.x402.network: must be a network such as base-sepolia, base or local, or a CAIP-2 id such as eip155:84532; did you mean base-sepolia?',
    ],
  ],
  [
    'a chain id alone',
    'base-sepolia',
    '84532',
    [
      '7:5 payments.x402.network: must be a network such as base-sepolia, base or local, or a CAIP-2 id such as eip155:84532; put it in quotes, else YAML reads it as a number',
    ],
  ],
  [
    'a CAIP-2 id that is not known',
    'base-sepolia',
    'eip155:99999',
    [
      '7:5 payments.x402.network: is unknown; known: ethereum, polygon, monad, sei, base, arbitrum-one, celo, avalanche, sei-testnet, avalanche-fuji, polygon-amoy, base-sepolia, arbitrum-sepolia, ethereum-sepolia, local; on another one name asset, assetName, assetVersion, assetDecimals, facilitator',
    ],
  ],
  [
    'no network',
    '    network: base-sepolia\n',
    '',
    [
      '6:3 payments.x402.network: is missing: a network such as base-sepolia, base or local, or a CAIP-2 id such as eip155:84532',
    ],
  ],
  [
    'real money that is not allowed',
    'base-sepolia',
    'base',
    [
      '6:3 payments.x402.facilitator: is missing: choose who settles real money, such as { mode: remote, url: https://api.cdp.coinbase.com/platform/v2/x402, auth: { type: cdp, keyId: …, keySecret: … } }',
    ],
  ],
  [
    'a testnet whose facilitator is not known',
    'base-sepolia',
    'avalanche-fuji',
    ['6:3 payments.x402.facilitator: is missing: mode remote with url, or mode local with privateKey'],
  ],
  [
    'another asset without its names',
    'network: base-sepolia',
    'network: base-sepolia\n    asset: "0x2222222222222222222222222222222222222222"',
    [
      "6:3 payments.x402.assetName: is missing: the token's EIP-712 domain name, exactly as its contract has it",
      '6:3 payments.x402.assetVersion: is missing: the token\'s EIP-712 domain version in quotes, such as "2"',
      "6:3 payments.x402.assetDecimals: is missing: the token's decimals",
      '13:5 resources.search.pricing: must be { type: fixed, amount: "0.01", currency: … }: $ stands for USDC, and payments.x402.asset is another token',
    ],
  ],
  [
    'a price in dollars of another asset',
    'network: base-sepolia',
    'network: base-sepolia\n    asset: "0x2222222222222222222222222222222222222222"\n    assetName: EURC\n    assetVersion: "2"\n    assetDecimals: 6',
    [
      '16:5 resources.search.pricing: must be { type: fixed, amount: "0.01", currency: … }: $ stands for USDC, and payments.x402.asset is another token',
    ],
  ],
  ['no name', '  name: Sock Shop', '  {}', ['2:1 merchant.name: is missing: a display name of 1 to 200 characters']],
  [
    'a name without Latin letters',
    'Sock Shop',
    '市場',
    [
      "2:1 merchant.id: is missing: an id of 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit",
    ],
  ],
  [
    'a price without quotes or sign',
    '"$0.01"',
    '0.01',
    [
      '12:5 resources.search.pricing: must be free, a price in USDC such as "$0.01", or a mapping of type, amount, currency and settle; put it in quotes, else YAML reads it as a number',
    ],
  ],
  [
    'a price without its sign',
    '"$0.01"',
    '"0.01"',
    [
      '12:5 resources.search.pricing: must be free, a price in USDC such as "$0.01", or a mapping of type, amount, currency and settle',
    ],
  ],
  [
    'free in capitals',
    '"$0.01"',
    'Free',
    [
      '12:5 resources.search.pricing: must be free, a price in USDC such as "$0.01", or a mapping of type, amount, currency and settle',
    ],
  ],
  [
    'no price',
    '    pricing: "$0.01"\n',
    '',
    [
      '10:3 resources.search.pricing: is missing: free, a price in USDC such as "$0.01", or a mapping of type, amount, currency and settle',
    ],
  ],
  [
    'a resource as a text',
    /(?: {4}backend: .*\n {4}pricing: .*\n)/,
    '    GET /search\n',
    ['10:3 resources.search: must be one operation of the merchant that agents can call: a mapping of keys to values'],
  ],
  [
    'a port that is none',
    'resources:',
    'server: { port: 99999 }\nresources:',
    ['9:11 server.port: must be a port from 0 (any free one) to 65535 (0 to 65535)'],
  ],
];

describe('a wrong short configuration', () => {
  for (const [title, from, to, said] of MISTAKES)
    it(`is told its place and remedy: ${title}`, () => {
      const path = file('short.yaml', changed(from, to));
      assert.throws(
        () => loadConfig({ path, env: {} }),
        (error) => {
          assert.ok(error instanceof ConfigError);
          const lines = error.problems.map((problem) => problemLine(problem).replace(`${path}:`, ''));
          assert.deepEqual(lines, said);
          return true;
        },
      );
    });
});
