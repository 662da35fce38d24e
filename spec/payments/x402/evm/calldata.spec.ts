import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeFunctionData, parseAbi, parseSignature } from 'viem';
import {
  authorizationStateCall,
  balanceCall,
  marked,
  markOf,
  SELECTORS,
  transferCall,
  validBeforeIn,
} from '../../../../src/payments/x402/evm/calldata.ts';
import { MULTICALL3_ABI } from '../../../support/contracts.ts';
import { freshAccount, payloadFor, termsFor } from '../signing.ts';

const ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
]);
const { signature, authorization } = (await payloadFor(freshAccount(), termsFor())).payload;
type Hex = `0x${string}`;
const [from, to, nonce] = [authorization.from, authorization.to, authorization.nonce] as [Hex, Hex, Hex];
const numbers = [authorization.value, authorization.validAfter, authorization.validBefore].map(BigInt);
const members = [from, to, ...numbers, nonce] as unknown as readonly [Hex, Hex, bigint, bigint, bigint, Hex];

describe('calldata by concatenation', () => {
  it('has a mark only where one was put behind the arguments, for every signature', () => {
    const mark = 'c3'.repeat(32);
    const calls = [
      transferCall(authorization, signature, 'account'),
      ...[1, 31, 32, 33, 65, 300].map((bytes) => transferCall(authorization, `0x${'a7'.repeat(bytes)}`, 'contract')),
    ];
    for (const call of calls) {
      assert.equal(markOf(call), undefined);
      assert.equal(markOf(marked(call, mark)), mark);
      assert.equal(marked(call, undefined), call);
      assert.equal(markOf(`${marked(call, mark)}00`), undefined);
    }
    assert.equal(markOf(`0xdeadbeef${mark}`), undefined);
    assert.equal(markOf('0x'), undefined);
  });

  it('equals the reference for an account', () => {
    const { r, s, v } = parseSignature(signature as Hex);
    const args = [...members, Number(v), r, s] as const;
    const expected = encodeFunctionData({ abi: ABI, functionName: 'transferWithAuthorization', args });
    assert.equal(transferCall(authorization, signature, 'account'), expected);
  });

  for (const bytes of [1, 31, 32, 33, 65, 300])
    it(`equals the reference for a contract's signature of ${bytes} bytes`, () => {
      const long: Hex = `0x${'a7'.repeat(bytes)}`;
      const args = [...members, long] as const;
      const expected = encodeFunctionData({ abi: ABI, functionName: 'transferWithAuthorization', args });
      assert.equal(transferCall(authorization, long, 'contract'), expected);
    });

  it('shows until when an authorization is valid, also where one transaction batches many calls', () => {
    const payment = { from, payTo: to, units: BigInt(authorization.value), nonce };
    const expected = BigInt(authorization.validBefore);
    const call = transferCall(authorization, signature, 'account') as Hex;
    const other = transferCall({ ...authorization, nonce: `0x${'0'.repeat(64)}` }, signature, 'account') as Hex;
    const calls = [other, call].map((callData) => ({ target: to, allowFailure: true, callData }));
    const many = encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3', args: [calls] });
    for (const input of [call, many]) assert.equal(validBeforeIn(input, payment), expected);
    for (const input of [other, '0x', call.slice(0, 300)]) assert.equal(validBeforeIn(input, payment), undefined);
    assert.equal(validBeforeIn(call, { ...payment, units: 1n }), undefined);
  });

  it('equals the reference for the questions to a token', () => {
    const ask = (functionName: 'name' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR') =>
      encodeFunctionData({ abi: ABI, functionName });
    assert.equal(SELECTORS.name, ask('name'));
    assert.equal(SELECTORS.version, ask('version'));
    assert.equal(SELECTORS.decimals, ask('decimals'));
    assert.equal(SELECTORS.domainSeparator, ask('DOMAIN_SEPARATOR'));
    const state = encodeFunctionData({ abi: ABI, functionName: 'authorizationState', args: [from, nonce] });
    assert.equal(authorizationStateCall(from, nonce), state);
    assert.equal(balanceCall(from), encodeFunctionData({ abi: ABI, functionName: 'balanceOf', args: [from] }));
  });
});
