import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { adaptersSummary, configWarnings } from '../../src/config/warnings.ts';
import { type Changes, EURO, load, MAINNET, SEPOLIA } from './document/document.ts';

const X = 'payments.x402';
const F = `${X}.facilitator`;
const CDP = 'https://api.cdp.coinbase.com/platform/v2/x402';
const [LOCAL, PLAIN] = ['http://localhost:4020', 'http://api.shop.example'];
const BEARER = { [`${F}.auth`]: { type: 'bearer', token: 'facilitator-token' } };
/** Warned of on its own, where the store is a file or a server. */
const SEALED = { 'storage.sealing': { keys: [{ id: 'k1', key: Buffer.alloc(32, 1).toString('base64') }] } };

function warningsOf(changes: Changes): readonly string[] {
  return configWarnings(load({ ...changes, ...SEALED }));
}

function cdpLogin(): object {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const bytes = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]);
  return { type: 'cdp', keyId: 'one', keySecret: bytes.toString('base64') };
}

describe('a warning about payments', () => {
  const warned: readonly (readonly [what: string, changes: Changes, warning: RegExp])[] = [
    [
      'the facilitator of testnets on a mainnet',
      { ...MAINNET, ...BEARER, [`${F}.url`]: 'https://www.x402.org/facilitator' },
      /^payments\.x402\.facilitator\.url: x402\.org settles on testnets only/,
    ],
    ['no login on a mainnet', MAINNET, /^payments\.x402\.facilitator\.auth: none, .* set bearer or cdp/],
    [
      'no login of a fallback on a mainnet',
      { ...MAINNET, ...BEARER, [`${F}.fallbacks`]: [{ url: 'https://two.example' }] },
      /^payments\.x402\.facilitator\.fallbacks\[0\]\.auth: none/,
    ],
    [
      "another login at Coinbase's facilitator",
      { ...BEARER, [`${F}.url`]: CDP },
      /^payments\.x402\.facilitator\.auth: Coinbase's facilitator wants type cdp/,
    ],
    [
      'an entry that no price names',
      { [X]: [SEPOLIA, EURO] },
      /^payments\.x402\[1\]: no price is in .*, so nothing is sold there$/,
    ],
    ...[`${F}.url`, `${X}.rpcUrl`, 'merchant.publicBaseUrl'].map(
      (path) => [`plain http in ${path}`, { [path]: PLAIN }, new RegExp(`^${path}: plain http.* use https$`)] as const,
    ),
  ];
  for (const [what, changes, warning] of warned)
    it(`comes alone for ${what}`, () => {
      const [first, ...others] = warningsOf(changes);
      assert.match(first ?? 'no warning', warning);
      assert.deepEqual(others, []);
    });

  const accepted: readonly (readonly [what: string, changes: Changes])[] = [
    ['the facilitator of testnets on a testnet', { [`${F}.url`]: 'https://www.x402.org/facilitator' }],
    ['a bearer on a mainnet', { ...MAINNET, ...BEARER }],
    ["Coinbase's facilitator with its login", { ...MAINNET, [`${F}.url`]: CDP, [`${F}.auth`]: cdpLogin() }],
    [
      'plain http on this machine',
      { [`${F}.url`]: LOCAL, [`${X}.rpcUrl`]: 'http://127.0.0.1:8545', 'merchant.publicBaseUrl': LOCAL },
    ],
    [
      'plain http where nothing is paid',
      { ...{ payments: undefined, 'resources.report.pricing': { type: 'free' } }, 'merchant.publicBaseUrl': PLAIN },
    ],
  ];
  for (const [what, changes] of accepted)
    it(`does not come for ${what}`, () => assert.deepEqual(warningsOf(changes), []));
});

describe('the summary of the adapters', () => {
  it('names the enabled ones, their paths, and how many resources each offers', () => {
    const changes = {
      'protocols.mcp.enabled': true,
      'protocols.a2a.enabled': true,
      'protocols.a2a.mountPath': '/agent',
    };
    const config = load({ ...changes, 'resources.report.expose': ['http', 'mcp'] });
    assert.equal(adaptersSummary(config), 'http (1), mcp at /mcp (1), a2a at /agent (0)');
    assert.equal(adaptersSummary(load({})), 'http (1)');
  });
});
