import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toHex } from 'viem';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { TEST_BUYER } from '../../../../src/payments/pricing/networks.ts';
import { isPublishedAccount, isPublishedKey } from '../../../../src/payments/x402/evm/published-keys.ts';

/** The accounts that hardhat opens; the first ten are those of anvil. */
const DEVELOPMENT_ACCOUNTS = Array.from({ length: 20 }, (_, addressIndex) => {
  const account = mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex });
  return { address: account.address, key: toHex(account.getHdKey().privateKey ?? new Uint8Array()) };
});
const BASE_SEPOLIA = 84_532;
const LOCAL = 31_337;

describe('published keys', () => {
  it('are those of the TEST buyer and of the development accounts, on every chain but the local one', () => {
    assert.equal(privateKeyToAddress(TEST_BUYER.key), TEST_BUYER.address);
    for (const { address, key } of [TEST_BUYER, ...DEVELOPMENT_ACCOUNTS]) {
      for (const account of [address, address.toLowerCase()]) {
        assert.equal(isPublishedAccount(account, BASE_SEPOLIA), true, account);
        assert.equal(isPublishedAccount(account, LOCAL), false, account);
      }
      for (const spelled of [key, `0x${key.slice(2).toUpperCase()}`]) {
        assert.equal(isPublishedKey(spelled, BASE_SEPOLIA), true, address);
        assert.equal(isPublishedKey(spelled, LOCAL), false, address);
      }
    }
  });

  it('are no others', () => {
    const key = generatePrivateKey();
    assert.equal(isPublishedKey(key, BASE_SEPOLIA), false);
    assert.equal(isPublishedAccount(privateKeyToAddress(key), BASE_SEPOLIA), false);
  });
});
