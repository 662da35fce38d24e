import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findDefaultAsset } from '@x402/evm';
import { KNOWN_NETWORKS } from '../../../src/payments/pricing/networks.ts';

/** Networks of which the official package has no USDC. */
const WITHOUT: ReadonlySet<string> = new Set(['eip155:43113', 'eip155:80002', 'eip155:11155111']);

describe('the USDC of a known network', () => {
  for (const { title, chainId, usdc } of KNOWN_NETWORKS.values()) {
    if (usdc === undefined) continue;
    const network = `eip155:${chainId}` as const;
    it(`is that of the official package, with its EIP-712 domain: ${title}`, () => {
      const official = findDefaultAsset(usdc.address, network);
      if (WITHOUT.has(network)) return assert.equal(official, undefined, 'can be compared now');
      const { asset, name, version, decimals } = official ?? assert.fail('unknown there');
      assert.deepEqual(
        { address: asset.toLowerCase(), name, version, decimals },
        { ...usdc, address: usdc.address.toLowerCase() },
      );
    });
  }
});
