import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { domainSeparator as viemSeparator } from 'viem';
import { domainSeparator } from '../../../../src/payments/x402/evm/typed-data.ts';

describe('the domain separator of an asset', () => {
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
