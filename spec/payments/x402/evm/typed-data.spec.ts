import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { domainSeparator as viemSeparator } from 'viem';
import { domainSeparator } from '../../../../src/payments/x402/evm/typed-data.ts';

const USDC = [
  [
    'Base',
    8453,
    '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    'USD Coin',
    '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f',
  ],
  [
    'Base Sepolia',
    84532,
    '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    'USDC',
    '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818',
  ],
  [
    'Ethereum',
    1,
    '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    'USD Coin',
    '0x06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335',
  ],
  [
    'Polygon',
    137,
    '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    'USD Coin',
    '0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca',
  ],
  [
    'Arbitrum',
    42161,
    '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    'USD Coin',
    '0x08d11903f8419e68b1b8721bcbe2e9fc68569122a77ef18c216f10b3b5112c78',
  ],
  [
    'Avalanche',
    43114,
    '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E',
    'USD Coin',
    '0xbbea200329a938bc3438984a49cb0732e66d66d7bd59c127abacc1710e77f7b3',
  ],
] as const;

describe('the domain separator of an asset', () => {
  for (const [network, chainId, verifyingContract, name, separator] of USDC)
    it(`is the published one for USDC on ${network}`, () => {
      assert.equal(domainSeparator({ name, version: '2', chainId, verifyingContract }), separator);
    });

  it('differs when the EIP-712 name does', () => {
    const [, chainId, verifyingContract] = USDC[0];
    const wrong = domainSeparator({ name: 'USDC', version: '2', chainId, verifyingContract });
    assert.notEqual(wrong, USDC[0][4]);
  });

  it('equals the reference implementation for any domain', () => {
    // An empty member would drop out of the reference's type.
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    const hex = fc.stringMatching(/^[0-9a-f]{40}$/);
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 2 ** 48 }), hex, (name, version, chainId, digits) => {
        const verifyingContract = `0x${digits}` as const;
        const domain = { name, version, chainId, verifyingContract };
        assert.equal(domainSeparator(domain), viemSeparator({ domain }));
      }),
      { numRuns: 300 },
    );
  });
});
