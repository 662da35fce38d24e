/** EIP-3009 authorizations and calldata made by hand, to hold the token against. */

import { randomBytes } from 'node:crypto';
import { type Address, encodeFunctionData, type Hex, parseSignature, serializeSignature, toHex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Chain } from '../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';

/** The order of secp256k1. */
const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** EIP-712 types of the token's two messages. */
export const TOKEN_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

/** An account's signature; `yParity` 0 or 1. */
export interface Signature {
  readonly r: Hex;
  readonly s: Hex;
  readonly yParity: number;
}

/** A transfer authorization; times in Unix seconds of the chain. */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** Time of the newest block, Unix seconds. */
export async function chainTime(chain: Chain): Promise<bigint> {
  const block = (await chain.request('eth_getBlockByNumber', ['latest', false])) as { readonly timestamp: Hex };
  return BigInt(block.timestamp);
}

/** 1,000 units, valid for an hour, with a random nonce. */
export async function authorization(
  chain: Chain,
  from: Address,
  to: Address,
  change: Partial<Authorization> = {},
): Promise<Authorization> {
  const validBefore = (await chainTime(chain)) + 3_600n;
  return { from, to, value: 1_000n, validAfter: 0n, validBefore, nonce: toHex(randomBytes(32)), ...change };
}

/** Signed for the token of this chain. */
export async function signTransfer(
  chain: Chain,
  account: PrivateKeyAccount,
  message: Authorization,
): Promise<Signature> {
  const signed = await account.signTypedData({
    domain: domain(chain),
    types: TOKEN_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: { ...message },
  });
  return parsed(signed);
}

/** Calldata of the form with v, r, s. */
export function transferCall(message: Authorization, { r, s, yParity }: Signature, v = 27 + yParity): Hex {
  return encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'transferWithAuthorization',
    args: [...fields(message), v, r, s],
  });
}

/** Calldata of the form with signature bytes. */
export function transferBytesCall(message: Authorization, signature: Signature): Hex {
  const args = [...fields(message), serializeSignature(signature)] as const;
  return encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transferWithAuthorization', args });
}

/** Calldata that makes an unused authorization worthless. */
export async function cancelCall(chain: Chain, account: PrivateKeyAccount, nonce: Hex): Promise<Hex> {
  const message = { authorizer: account.address, nonce };
  const primaryType = 'CancelAuthorization';
  const signed = await account.signTypedData({ domain: domain(chain), types: TOKEN_TYPES, primaryType, message });
  const { r, s, yParity } = parsed(signed);
  return encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'cancelAuthorization',
    args: [account.address, nonce, 27 + yParity, r, s],
  });
}

/** The other signature of the same message, which the curve allows and the token must not. */
export function highS({ r, s, yParity }: Signature): Signature {
  return { r, s: toHex(CURVE_ORDER - BigInt(s), { size: 32 }), yParity: 1 - yParity };
}

function parsed(signature: Hex): Signature {
  const { r, s, yParity } = parseSignature(signature);
  if (yParity === undefined) throw new Error('a signature without parity');
  return { r, s, yParity };
}

function domain(chain: Chain) {
  const { name, version, address } = chain.token;
  return { name, version, chainId: chain.chainId, verifyingContract: address } as const;
}

function fields({ from, to, value, validAfter, validBefore, nonce }: Authorization) {
  return [from, to, value, validAfter, validBefore, nonce] as const;
}
