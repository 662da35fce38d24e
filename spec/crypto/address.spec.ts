import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { getAddress } from 'viem/utils';
import { checksumAddress } from '../../src/crypto/keccak.ts';

describe('the checksum of an address', () => {
  it('is that of EIP-55, as the general library writes it', () => {
    for (let at = 0; at < 500; at += 1) {
      const address = `0x${randomBytes(20).toString('hex')}` as const;
      assert.equal(checksumAddress(address), getAddress(address));
    }
  });

  it('does not depend on the case in which the address comes', () => {
    const address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
    assert.equal(checksumAddress(address.toLowerCase()), address);
    assert.equal(checksumAddress(`0x${address.slice(2).toUpperCase()}`), address);
  });
});
