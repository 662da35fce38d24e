import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { hashTypedData, recoverAddress, toHex } from 'viem';
import {
  generatePrivateKey,
  mnemonicToAccount,
  privateKeyToAccount,
  privateKeyToAddress,
  sign as signDigest,
} from 'viem/accounts';
import { keccak256 } from 'viem/utils';
import { TEST_BUYER } from '../../../../src/payments/pricing/networks.ts';
import {
  CURVE_ENGINES,
  isPrivateKey,
  isPublishedAccount,
  isPublishedKey,
  prepareKey,
  prepareRecovery,
  readAccountSignature,
  signTransaction,
} from '../../../../src/payments/x402/evm/account.ts';
import { authorizationDigest, bytesHex } from '../../../../src/payments/x402/evm/eip3009.ts';
import type { Eip3009Authorization } from '../../../../src/payments/x402/wire/types.ts';
import { bareV, freshAccount, freshAddress, highS, ORDER, otherV, sign, termsFor, typedData } from '../signing.ts';

/** Random authorizations, each tried in every form by every engine. */
const AUTHORIZATIONS = 100;
const ACCOUNTS = 12;

type Form = (signature: string) => string;

/** `recovered`: as the reference recovers it; `refused`: no account can have made it. */
const FORMS: readonly (readonly [name: string, form: Form, expected: 'recovered' | 'refused'])[] = [
  ['as signed', (signature) => signature, 'recovered'],
  ['one bit of r flipped', (signature) => flipBit(signature, 0, 32), 'recovered'],
  ['one bit of s flipped, kept low', (signature) => flipBit(signature, 33, 64), 'recovered'],
  ['v as a bare recovery id', bareV, 'recovered'],
  ['the other v', otherV, 'recovered'],
  ['s in the upper half', highS, 'refused'],
  ['v 29', (signature) => `${signature.slice(0, -2)}1d`, 'refused'],
  ['v 2', (signature) => `${signature.slice(0, -2)}02`, 'refused'],
  ['r zero', (signature) => `0x${'0'.repeat(64)}${signature.slice(66)}`, 'refused'],
  ['s zero', (signature) => `${signature.slice(0, 66)}${'0'.repeat(64)}${signature.slice(-2)}`, 'refused'],
  ['r at the order', (signature) => `0x${ORDER.toString(16)}${signature.slice(66)}`, 'refused'],
  ['64 bytes', (signature) => signature.slice(0, -2), 'refused'],
  ['66 bytes', (signature) => `${signature}00`, 'refused'],
];

describe('recovery of the payer', () => {
  const terms = termsFor();
  const digest = authorizationDigest(terms.domainSeparator);

  it('agrees with the reference on the digest and on every form of a signature, in every engine', async () => {
    const engines = await Promise.all(CURVE_ENGINES.map((engine) => prepareRecovery([engine])));
    assert.deepEqual(
      engines.map(({ engine }) => engine),
      [...CURVE_ENGINES],
    );
    const accounts = Array.from({ length: ACCOUNTS }, freshAccount);
    for (let n = 0; n < AUTHORIZATIONS; n += 1) {
      const account = accounts[n % ACCOUNTS] ?? freshAccount();
      const authorization = anyAuthorization(account.address);
      const hash = digest(authorization);
      assert.equal(bytesHex(hash), hashTypedData(typedData(authorization, terms)));
      const signature = await sign(account, authorization, terms);
      for (const [name, form, expected] of FORMS) {
        const spelled = form(signature);
        const read = readAccountSignature(spelled);
        assert.equal(read === undefined, expected === 'refused', name);
        if (read === undefined) continue;
        const payer = await reference(bytesHex(hash), read.canonical);
        if (name === 'as signed') assert.equal(payer, account.address.toLowerCase());
        for (const { engine, recover } of engines) {
          assert.equal(recover(hash, read), payer, `${engine}, ${name}`);
        }
      }
    }
  });

  it('needs an engine: without one the start fails', async () => {
    await assert.rejects(prepareRecovery([]), AggregateError);
  });
});

async function reference(hash: string, signature: string): Promise<string | undefined> {
  try {
    const address = await recoverAddress({ hash: hash as `0x${string}`, signature: signature as `0x${string}` });
    return address.toLowerCase();
  } catch {
    return undefined;
  }
}

function anyAuthorization(from: string): Eip3009Authorization {
  const uint = (bytes: number): string => BigInt(`0x${randomBytes(bytes).toString('hex')}`).toString();
  return {
    from,
    to: freshAddress(),
    value: uint(randomInt(1, 33)),
    validAfter: uint(randomInt(1, 33)),
    validBefore: uint(randomInt(1, 33)),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
}

/** Flips one random bit in a range of bytes, never the top bit of s, so that s stays low. */
function flipBit(signature: string, fromByte: number, toByte: number): string {
  const bytes = Buffer.from(signature.slice(2), 'hex');
  const at = randomInt(fromByte, toByte);
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << randomInt(0, 8)), at);
  return `0x${bytes.toString('hex')}`;
}

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

type Hex = `0x${string}`;
const hex = (bytes: Uint8Array): Hex => bytesHex(bytes) as Hex;

describe('a transaction of the relayer', () => {
  for (const engine of CURVE_ENGINES)
    it(`has the bytes and the hash that viem gives it, signed by ${engine}`, async () => {
      const privateKey = generatePrivateKey();
      const account = privateKeyToAccount(privateKey);
      const key = await prepareKey(privateKey, [engine]);
      assert.equal(key.address, account.address.toLowerCase());
      for (const [number, bytes, gas, fee] of [
        [0, 0, 0n, 0n],
        [1, 1, 21_000n, 1n],
        [127, 2, 127n, 127n],
        [128, 55, 128n, 128n],
        [255, 56, 255n, 256n],
        [256, 255, 160_000n, 10n ** 9n],
        [65_535, 256, 65_536n, 10n ** 12n],
        [2 ** 40, 65_536, 10n ** 7n, 2n ** 128n],
      ] as const) {
        const call = { to: hex(randomBytes(20)), data: hex(randomBytes(bytes)), gas };
        const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee / 2n };
        const chainId = randomInt(1, 2 ** 40);
        const { raw, hash } = signTransaction({ ...call, ...fees, chainId, number }, key);
        const expected = await account.signTransaction({ ...call, ...fees, type: 'eip1559', chainId, nonce: number });
        assert.equal(raw, expected);
        assert.equal(hash, keccak256(expected));
      }
    });

  it('of a single byte has it as itself below 128, and behind its length from there on', async () => {
    const privateKey = generatePrivateKey();
    const [account, key] = [privateKeyToAccount(privateKey), await prepareKey(privateKey)];
    const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n };
    for (const data of ['0x00', '0x7f', '0x80', '0xff'] as const) {
      const call = { to: hex(randomBytes(20)), data, gas: 1n, chainId: 1 };
      const expected = await account.signTransaction({ ...call, ...fees, type: 'eip1559', nonce: 1 });
      assert.equal(signTransaction({ ...call, ...fees, number: 1 }, key).raw, expected);
    }
  });

  it('keeps what is short of r and s short: leading zeros are no part of a number', async () => {
    const privateKey = `0x${'11'.repeat(32)}` as const;
    const key = await prepareKey(privateKey);
    const account = privateKeyToAccount(privateKey);
    const call = { to: `0x${'ab'.repeat(20)}`, data: '0x', gas: 21_000n, chainId: 1 } as const;
    const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n };
    let short = 0;
    for (let number = 0; short < 2; number += 1) {
      const { raw } = signTransaction({ ...call, ...fees, number }, key);
      // A full transaction ends with two heads and two words of 32 bytes.
      const isShort = raw.slice(-66, -64) !== 'a0' || raw.slice(-132, -130) !== 'a0';
      if (!isShort) continue;
      short += 1;
      assert.equal(raw, await account.signTransaction({ ...call, ...fees, type: 'eip1559', nonce: number }));
    }
  });
});

describe('the signature of a digest', () => {
  for (const engine of CURVE_ENGINES)
    it(`of ${engine} is the one that RFC 6979 gives, with s in the lower half`, async () => {
      const privateKey = generatePrivateKey();
      const key = await prepareKey(privateKey, [engine]);
      for (let turn = 0; turn < 20; turn += 1) {
        const digest = randomBytes(32);
        const { compact, recoveryId } = key.sign(digest);
        const { r, s, yParity } = await signDigest({ hash: hex(digest), privateKey });
        assert.deepEqual([hex(compact), recoveryId], [`${r}${s.slice(2)}`, yParity]);
      }
    });

  it('is not made with what is no private key', async () => {
    for (const engine of CURVE_ENGINES)
      for (const key of ['00'.repeat(32), 'ff'.repeat(32)]) await assert.rejects(prepareKey(`0x${key}`, [engine]));
  });
});

describe('a private key', () => {
  it('is above zero and below the order of the curve', () => {
    const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
    assert.equal(isPrivateKey(`0x${'0'.repeat(64)}`), false);
    assert.equal(isPrivateKey(`0x${'0'.repeat(63)}1`), true);
    assert.equal(isPrivateKey(`0x${order}`), false);
    assert.equal(isPrivateKey(`0x${order.slice(0, -1)}0`), true);
  });
});
