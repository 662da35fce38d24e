import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { hashTypedData, recoverAddress } from 'viem';
import { bytesHex } from '../../../../src/payments/x402/evm/calldata.ts';
import {
  prepareRecovery,
  RECOVERY_ENGINES,
  readAccountSignature,
} from '../../../../src/payments/x402/evm/signature.ts';
import { authorizationDigest } from '../../../../src/payments/x402/evm/typed-data.ts';
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
