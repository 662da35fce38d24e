import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { withBothLines } from '../../src/config/sections/short-form.ts';
import { KNOWN_NETWORKS, NETWORK_NAMES } from '../../src/payments/pricing/networks.ts';
import { ProblemList } from '../../src/problems/problem.ts';
import { file, folder } from './files.ts';
import { FORMS } from './mistakes.ts';

const PAYEE = '0x1111111111111111111111111111111111111111';
const SHORT = FORMS.short.text;
/** The same in its long form. */
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
    const { examples, pattern } = schema.$defs.x402.properties.network;
    assert.deepEqual(examples, [...NETWORK_NAMES.keys()]);
    assert.ok(examples.every((name) => new RegExp(pattern).test(name)));
  });
});

function read(document: object): unknown {
  const problems = new ProblemList();
  const result = withBothLines(document, problems);
  problems.throwIfAny();
  return result;
}

describe('a token of two lines', () => {
  it('is two operator tokens', () => {
    const server = { adminToken: 'new', adminTokenNext: 'old' };
    assert.deepEqual(read({ server: { adminToken: 'new\nold' } }), { server });
    assert.deepEqual(read({ server: { adminToken: 'new\r\nold\r\n' } }), { server });
  });

  it('is one where the second line is missing', () => {
    assert.deepEqual(read({ server: { adminToken: 'one' } }), { server: { adminToken: 'one' } });
  });

  it('is refused beside a third token', () => {
    assert.throws(() => read({ server: { adminToken: 'new\nold', adminTokenNext: 'third' } }), /adminTokenNext/);
  });

  it('of three lines stays as it is, for the schema to refuse', () => {
    assert.deepEqual(read({ server: { adminToken: 'a\nb\nc' } }), { server: { adminToken: 'a\nb\nc' } });
  });

  it('is two tokens of the one checkout client, and of a client of the list', () => {
    assert.deepEqual(read({ protocols: { acp: { auth: { token: 'new\nold' } } } }), {
      protocols: { acp: { auth: { clients: [{ id: 'default', tokens: ['new', 'old'] }] } } },
    });
    const clients = [{ id: 'a', tokens: ['new\nold'] }];
    assert.deepEqual(read({ protocols: { acp: { auth: { clients } } } }), {
      protocols: { acp: { auth: { clients: [{ id: 'a', tokens: ['new', 'old'] }] } } },
    });
  });

  it('changes nothing of a document that is none', () => {
    for (const document of [null, 7, 'text', [], { server: 7, protocols: [] }])
      assert.deepEqual(withBothLines(document, new ProblemList()), document);
  });
});
