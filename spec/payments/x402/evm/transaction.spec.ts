import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { encodeFunctionData } from 'viem';
import { generatePrivateKey, privateKeyToAccount, sign } from 'viem/accounts';
import { keccak256 } from 'viem/utils';
import {
  aggregateCall,
  bytesHex,
  marked,
  markOf,
  transferCall,
  validBeforeIn,
} from '../../../../src/payments/x402/evm/calldata.ts';
import { isPrivateKey, prepareKey, SIGNING_ENGINES } from '../../../../src/payments/x402/evm/signing-key.ts';
import { signTransaction } from '../../../../src/payments/x402/evm/transaction.ts';
import { MULTICALL3_ABI } from '../../../../tools/local-world/contracts.ts';
import { freshAccount, payloadFor, termsFor } from '../signing.ts';

type Hex = `0x${string}`;
const hex = (bytes: Uint8Array): Hex => bytesHex(bytes) as Hex;

describe('a transaction of the relayer', () => {
  for (const engine of SIGNING_ENGINES)
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
  for (const engine of SIGNING_ENGINES)
    it(`of ${engine} is the one that RFC 6979 gives, with s in the lower half`, async () => {
      const privateKey = generatePrivateKey();
      const key = await prepareKey(privateKey, [engine]);
      for (let turn = 0; turn < 20; turn += 1) {
        const digest = randomBytes(32);
        const { compact, recoveryId } = key.sign(digest);
        const { r, s, yParity } = await sign({ hash: hex(digest), privateKey });
        assert.deepEqual([hex(compact), recoveryId], [`${r}${s.slice(2)}`, yParity]);
      }
    });

  it('is not made with what is no private key', async () => {
    for (const engine of SIGNING_ENGINES)
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

const { signature, authorization } = (await payloadFor(freshAccount(), termsFor())).payload;

/** One word, without prefix: hex padded on the left, or a number. */
const word = (value: string | number | bigint): string =>
  (typeof value === 'string' ? value.slice(2).toLowerCase() : value.toString(16)).padStart(64, '0');
const { from, to, value, validAfter, validBefore, nonce } = authorization;
const members = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce].map(word).join('');

describe('the calldata of a transfer', () => {
  it('has a mark only where one was put behind the arguments, for every signature', () => {
    const mark = 'c3'.repeat(32);
    const calls = [
      transferCall(authorization, signature, 'account'),
      ...[1, 31, 32, 33, 65, 300].map((bytes) => transferCall(authorization, `0x${'a7'.repeat(bytes)}`, 'contract')),
    ];
    for (const call of calls) {
      assert.equal(markOf(call, authorization), undefined);
      assert.equal(markOf(marked(call, mark), authorization), mark);
      assert.equal(marked(call, undefined), call);
      assert.equal(markOf(`${marked(call, mark)}00`, authorization), undefined);
    }
    assert.equal(markOf(`0xdeadbeef${mark}`, authorization), undefined);
    assert.equal(markOf('0x', authorization), undefined);
  });

  it('has the mark of the authorization that is asked for, also in a batch', () => {
    const other = { ...authorization, nonce: `0x${'5e'.repeat(32)}` };
    const [mark, others] = ['c3'.repeat(32), 'd4'.repeat(32)];
    const call = marked(transferCall(authorization, signature, 'account'), mark);
    const batch = aggregateCall(to, [marked(transferCall(other, signature, 'account'), others), call]);
    assert.deepEqual([markOf(batch, authorization), markOf(batch, other)], [mark, others]);
    assert.equal(markOf(call, other), undefined);
    assert.equal(markOf(batch.slice(0, -64), authorization), undefined);
  });

  it('of an account has six members, then v, r and s, one word each', () => {
    const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)];
    const expected = `0xe3ee160e${members}${word(`0x${v}`)}${r}${s}`;
    assert.equal(transferCall(authorization, signature, 'account'), expected);
  });

  it('does not depend on the case of its addresses', () => {
    const upper = { ...authorization, to: `0x${to.slice(2).toUpperCase()}` };
    assert.equal(transferCall(upper, signature, 'account'), transferCall(authorization, signature, 'account'));
  });

  for (const bytes of [1, 31, 32, 33, 65, 300])
    it(`of a contract ends with its signature of ${bytes} bytes, in whole words`, () => {
      const digits = 'a7'.repeat(bytes);
      const padded = digits.padEnd(Math.ceil(bytes / 32) * 64, '0');
      const expected = `0xcf092995${members}${word(7 * 32)}${word(bytes)}${padded}`;
      assert.equal(transferCall(authorization, `0x${digits}`, 'contract'), expected);
    });

  it('shows until when an authorization is valid, also where one transaction batches many calls', () => {
    const payment = { from, payTo: to, units: BigInt(value), nonce };
    const expected = BigInt(validBefore);
    const call = transferCall(authorization, signature, 'account');
    const other = transferCall({ ...authorization, nonce: `0x${'0'.repeat(64)}` }, signature, 'account');
    const calls = [other, call].map((callData) => ({ target: to as Hex, allowFailure: true, callData }));
    const many = encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3', args: [calls] });
    for (const input of [call, many]) assert.equal(validBeforeIn(input, payment), expected);
    for (const input of [other, '0x', call.slice(0, 300)]) assert.equal(validBeforeIn(input, payment), undefined);
    assert.equal(validBeforeIn(call, { ...payment, units: 1n }), undefined);
  });
});
