import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getAddress } from 'viem/utils';
import { checksumAddress, hmacPads, hmacSha256 } from '../../src/crypto/hash.ts';

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

const bytes = (maxLength: number) => fc.uint8Array({ maxLength });

describe('an HMAC under a prepared key', () => {
  it('is that of Node, for keys and messages of every length, in one part or several', () =>
    fc.assert(
      fc.property(bytes(64), fc.array(bytes(200), { maxLength: 3 }), (key, parts) => {
        const expected = createHmac('sha256', key);
        for (const part of parts) expected.update(part);
        assert.deepEqual(hmacSha256(hmacPads(key), ...parts), expected.digest());
      }),
    ));

  it('is not made under a key of more than one block, which HMAC would hash first', () => {
    assert.throws(() => hmacPads(new Uint8Array(65)), RangeError);
  });
});
