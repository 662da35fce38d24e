import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { getAddress } from 'viem/utils';
import { KNOWN_NETWORKS } from '../../../src/payments/pricing/networks.ts';
import { domainSeparator } from '../../../src/payments/x402/evm/eip3009.ts';
import { eip155ChainId } from '../../../src/payments/x402/wire/proof.ts';
import type { DeploymentMode } from '../../../src/payments/x402/wire/settings.ts';
import { nearest } from '../../../src/problems/nearest.ts';
import { type Changes, load, MAINNET } from '../document/document.ts';

const X = 'payments.x402';
const LOCAL = { mode: 'local', privateKey: `0x${'1'.repeat(64)}` };

const OWN: Changes = { [`${X}.facilitator`]: LOCAL };
const NEAR: Changes = { [`${X}.facilitator.url`]: 'http://localhost:4020' };
const NEAR_NODE: Changes = { [`${X}.rpcUrl`]: 'http://127.0.0.1:8545' };
const onChain = (chainId: number, more: Changes): Changes => ({ ...more, [`${X}.network`]: `eip155:${chainId}` });

describe('the deployment mode', () => {
  const ROWS: readonly (readonly [string, Changes, DeploymentMode])[] = [
    ['a testnet', {}, 'testnet'],
    ['a mainnet', MAINNET, 'mainnet'],
    ['an own facilitator and an own node', onChain(777, { ...OWN, ...NEAR_NODE }), 'local'],
    ['a loopback facilitator and a loopback node', { ...NEAR, [`${X}.rpcUrl`]: 'http://[::1]:8545' }, 'local'],
    ['a loopback facilitator alone', NEAR, 'testnet'],
    ['a loopback node alone', NEAR_NODE, 'testnet'],
    ['an own facilitator and a node elsewhere', { ...OWN, [`${X}.rpcUrl`]: 'http://rpc.example' }, 'testnet'],
    [
      'an own facilitator and one of its nodes elsewhere',
      { ...OWN, ...NEAR_NODE, [`${X}.rpcUrls`]: ['http://rpc.example'] },
      'testnet',
    ],
    [
      'a development chain elsewhere',
      onChain(31_337, { [`${X}.facilitator.url`]: 'http://facilitator:4020' }),
      'local',
    ],
  ];
  for (const [title, changes, mode] of ROWS)
    it(`${title}: ${mode}`, () => assert.equal(load(changes).x402?.mode, mode));

  it('a mainnet behind an own node is local, and must still be allowed', () => {
    const ownNode = onChain(8_453, { ...OWN, ...NEAR_NODE });
    assert.throws(() => load(ownNode), /payments\.x402\.allowMainnet: must be true/);
    assert.equal(load({ ...ownNode, [`${X}.allowMainnet`]: true }).x402?.mode, 'local');
  });
});

describe('the table of networks', () => {
  it('has every USDC address with its checksum', () => {
    for (const { usdc } of KNOWN_NETWORKS.values()) if (usdc) assert.equal(getAddress(usdc.address), usdc.address);
  });
  const SEPARATORS: Readonly<Record<string, string>> = {
    'eip155:8453': '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f',
    'eip155:84532': '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818',
    'eip155:1': '0x06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335',
    'eip155:137': '0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca',
    'eip155:42161': '0x08d11903f8419e68b1b8721bcbe2e9fc68569122a77ef18c216f10b3b5112c78',
    'eip155:43114': '0xbbea200329a938bc3438984a49cb0732e66d66d7bd59c127abacc1710e77f7b3',
  };
  for (const [network, separator] of Object.entries(SEPARATORS))
    it(`gives the domain separator that USDC has on ${network}`, () => {
      const known = KNOWN_NETWORKS.get(network);
      assert.ok(known?.usdc);
      const { address, name, version } = known.usdc;
      assert.equal(domainSeparator({ name, version, chainId: known.chainId, verifyingContract: address }), separator);
    });
  it('reads chain ids of EVM networks only', () => {
    assert.equal(eip155ChainId('eip155:8453'), 8453);
    for (const text of ['eip155:0', 'eip155:01', 'eip155:', 'eip155:1x', 'solana:1', '8453', 'EIP155:1', 'eip155:1\n'])
      assert.equal(eip155ChainId(text), undefined);
  });
});

describe('the nearest key', () => {
  const KEYS = ['adminToken', 'adminTokenNext', 'host', 'port'];
  const ROWS: readonly (readonly [string, string | undefined])[] = [
    ['admintoken', 'adminToken'],
    ['adminTokens', 'adminToken'],
    ['prot', 'port'],
    ['hst', 'host'],
    ['colour', undefined],
    ['x'.repeat(10_000), undefined],
  ];
  for (const [name, expected] of ROWS)
    it(`for ${name.slice(0, 12)} is ${expected}`, () => assert.equal(nearest(name, KEYS), expected));
});

const F = `${X}.facilitator`;
const NODE = { [`${X}.rpcUrl`]: 'https://rpc.example' };
const fallback = (url: unknown, more: object = {}): Changes => ({ [`${F}.fallbacks`]: [{ url, ...more }] });
const many = (count: number): Changes => ({
  [`${F}.fallbacks`]: Array.from({ length: count }, (_, i) => ({ url: `https://f${i}.example` })),
});

describe('who confirms a settlement', () => {
  const rows: readonly (readonly [what: string, changes: Changes, confirm: string])[] = [
    ['the chain, when there is a node', NODE, 'receipt'],
    ['the chain, when there is a node and it is configured', { ...NODE, [`${X}.confirm`]: 'receipt' }, 'receipt'],
    ['the facilitator, when there is none', {}, 'facilitator'],
    ['the facilitator, when it is configured', { ...NODE, [`${X}.confirm`]: 'facilitator' }, 'facilitator'],
    ['the chain, when the gateway settles', { ...NODE, [F]: LOCAL }, 'receipt'],
  ];
  for (const [what, changes, confirm] of rows)
    it(`${what}: ${confirm}`, () => assert.equal(load(changes).x402?.confirm, confirm));
});

describe('a payment that the store has lost', () => {
  it('is delivered, unless configured otherwise', () => {
    assert.equal(load({}).x402?.onStoreLoss, 'deliver');
    assert.equal(load({ [`${X}.onStoreLoss`]: 'refuse' }).x402?.onStoreLoss, 'refuse');
  });
});

describe('how deep a payment must be', () => {
  it('is one block unless more are configured', () => {
    assert.equal(load(NODE).x402?.confirmations, 1);
    assert.equal(load({ ...NODE, [`${X}.confirmations`]: 12 }).x402?.confirmations, 12);
  });
});

describe('several facilitators', () => {
  it('are asked in the order of the file, without credentials unless given', () => {
    const auth = { type: 'bearer', token: 'second-token' };
    const facilitator = load({
      ...fallback('https://two.example/x402/', { auth }),
      [`${F}.url`]: 'https://one.example/',
    }).x402?.facilitator;
    assert.deepEqual(facilitator, {
      mode: 'remote',
      url: 'https://one.example',
      auth: { type: 'none' },
      fallbacks: [{ url: 'https://two.example/x402', auth }],
    });
    assert.deepEqual(load(many(4)).x402?.facilitator.mode, 'remote');
  });

  it('keep their tokens and the keys in their paths out of the log', () => {
    const config = load(
      fallback('https://two.example/v1/0123456789abcdef0123', { auth: { type: 'bearer', token: 'second-token' } }),
    );
    const secrets = config.secrets;
    for (const secret of ['second-token', '0123456789abcdef0123']) assert.ok(secrets.includes(secret), secret);
  });

  it('are this machine only when all of them are', () => {
    const local = { ...NEAR_NODE, ...NEAR };
    assert.equal(load({ ...local, ...fallback('http://localhost:4021') }).x402?.mode, 'local');
    assert.equal(load({ ...local, ...fallback('https://two.example') }).x402?.mode, 'testnet');
  });
});

describe('a login at Coinbase', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = String(privateKey.export({ type: 'sec1', format: 'pem' })).trim();
  const loginOf = (keySecret: string): unknown => {
    const auth = { type: 'cdp', keyId: 'one', keySecret };
    const facilitator = load({ [`${F}.auth`]: auth, ...fallback('https://two.example', { auth }) }).x402?.facilitator;
    return facilitator?.mode === 'remote' ? [facilitator.auth, facilitator.fallbacks[0]?.auth] : undefined;
  };

  for (const [what, text] of [
    ['as it is in a file', `${pem}\n`],
    ['with \\n for its line ends', pem.replaceAll('\n', '\\n')],
  ] as const)
    it(`takes a PEM ${what}`, () => {
      const auth = { type: 'cdp', keyId: 'one', keySecret: pem };
      assert.deepEqual(loginOf(text), [auth, auth]);
    });
});
