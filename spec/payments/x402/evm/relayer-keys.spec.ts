import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Hex } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { isPrivateKey, relayerAddresses, relayerKeys } from '../../../../src/payments/x402/evm/relayer-keys.ts';

/** A key of the tests. */
const KEY = `0x${'01'.repeat(32)}`;
/** HMAC-SHA256 of `acg relayer 1|n|0` under it, by Python's hmac. */
const DERIVED: readonly (readonly [index: number, key: string])[] = [
  [1, '0xb5bc821ed141dfaf64c35dce3440f08a23050af1ed1ff0d26fc620156c0f31f5'],
  [2, '0x9df16a27073a6d03732b288b7ea677ecc0928a08eff75080a10e90988cde1720'],
  [31, '0x2bc80f7c5015e4fab2e9a741e893b30d35809e2963ddc90e3bf311eb2912a69d'],
];

describe('the keys of a relayer with several accounts', () => {
  it('are the configured one, and others that follow from it in the same way for ever', () => {
    const keys = relayerKeys(KEY, 32);
    assert.equal(keys.length, 32);
    assert.equal(keys[0], KEY);
    for (const [index, key] of DERIVED) assert.equal(keys[index], key, `account ${index}`);
    assert.equal(new Set(keys).size, 32);
    assert.deepEqual(relayerKeys(KEY, 3), keys.slice(0, 3), 'their number changes none of them');
  });

  it('have the accounts that a wallet finds for them', async () => {
    const addresses = relayerKeys(KEY, 3).map((key) => privateKeyToAddress(key as Hex).toLowerCase());
    assert.deepEqual(await relayerAddresses(KEY, 3), addresses);
    assert.equal((await relayerAddresses(KEY)).length, 32);
  });

  it('are above zero and below the order of the curve', () => {
    const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
    assert.equal(isPrivateKey(`0x${'0'.repeat(64)}`), false);
    assert.equal(isPrivateKey(`0x${'0'.repeat(63)}1`), true);
    assert.equal(isPrivateKey(`0x${order}`), false);
    assert.equal(isPrivateKey(`0x${order.slice(0, -1)}0`), true);
  });
});
