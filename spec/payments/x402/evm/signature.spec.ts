import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hashTypedData, recoverAddress, toHex, domainSeparator as viemSeparator } from 'viem';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { TEST_BUYER } from '../../../../src/payments/pricing/networks.ts';
import { bytesHex } from '../../../../src/payments/x402/evm/calldata.ts';
import { isPublishedAccount, isPublishedKey } from '../../../../src/payments/x402/evm/published-keys.ts';
import {
  prepareRecovery,
  RECOVERY_ENGINES,
  readAccountSignature,
} from '../../../../src/payments/x402/evm/signature.ts';
import { authorizationDigest, domainSeparator } from '../../../../src/payments/x402/evm/typed-data.ts';
import type { Eip3009Authorization } from '../../../../src/payments/x402/wire/types.ts';
import { bareV, freshAccount, freshAddress, highS, ORDER, otherV, sign, termsFor, typedData } from '../signing.ts';

/** Random authorizations, each tried in every form by every engine. */
const AUTHORIZATIONS = 250;
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
    const engines = await Promise.all(RECOVERY_ENGINES.map((engine) => prepareRecovery([engine])));
    assert.deepEqual(
      engines.map(({ engine }) => engine),
      [...RECOVERY_ENGINES],
    );
    const accounts = Array.from({ length: ACCOUNTS }, freshAccount);
    let compared = 0;
    for (let n = 0; n < AUTHORIZATIONS; n += 1) {
      const account = accounts[n % ACCOUNTS] ?? freshAccount();
      const authorization = anyAuthorization(account.address);
      const hash = digest(authorization);
      assert.equal(bytesHex(hash), referenceDigest(authorization));
      const signature = await sign(account, authorization, terms);
      for (const [name, form, expected] of FORMS) {
        const spelled = form(signature);
        const read = readAccountSignature(spelled);
        assert.equal(read === undefined, expected === 'refused', name);
        if (read === undefined) continue;
        const payer = await reference(bytesHex(hash), read.canonical);
        if (name === 'as signed') assert.equal(payer, account.address.toLowerCase());
        for (const { engine, recover } of engines) {
          // JavaScript recovery costs milliseconds: it is compared on every fifth authorization.
          if (engine === 'viem' && n % 5 !== 0) continue;
          assert.equal(await recover(hash, read), payer, `${engine}, ${name}`);
          compared += 1;
        }
      }
    }
    assert.ok(compared > 2_500, `${compared} comparisons`);
  });

  it('falls through to the next engine when one does not load', async () => {
    const { engine } = await prepareRecovery(['tiny-secp256k1', 'viem']);
    assert.equal(engine, 'tiny-secp256k1');
    await assert.rejects(prepareRecovery([]), AggregateError);
  });

  function referenceDigest(authorization: Eip3009Authorization): string {
    return hashTypedData(typedData(authorization, terms));
  }
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
