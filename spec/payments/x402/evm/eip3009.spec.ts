import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encodeFunctionData, domainSeparator as viemSeparator } from 'viem';
import {
  aggregateCall,
  domainSeparator,
  marked,
  markOf,
  transferCall,
  validBeforeIn,
} from '../../../../src/payments/x402/evm/eip3009.ts';
import { MULTICALL3_ABI } from '../../../../tools/local-world/contracts.ts';
import { freshAccount, payloadFor, termsFor } from '../signing.ts';

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
    const calls = [other, call].map((callData) => ({ target: to as `0x${string}`, allowFailure: true, callData }));
    const many = encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3', args: [calls] });
    for (const input of [call, many]) assert.equal(validBeforeIn(input, payment), expected);
    for (const input of [other, '0x', call.slice(0, 300)]) assert.equal(validBeforeIn(input, payment), undefined);
    assert.equal(validBeforeIn(call, { ...payment, units: 1n }), undefined);
  });
});
