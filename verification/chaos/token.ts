/** EIP-3009 authorizations and calldata of a run. */

import { type Address, encodeFunctionData, type Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { TOKEN_TYPES } from '../../spec/world/authorization.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';

/**
 * An EIP-3009 authorization. Units as decimal strings, times in Unix seconds as decimal strings.
 */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: Hex;
}

type Domain = Pick<ChainAccess, 'chainId' | 'token'>;

/** Signs a transfer by authorization. */
export function signTransfer(account: PrivateKeyAccount, chain: Domain, authorization: Authorization): Promise<Hex> {
  const { from, to, nonce, value, validAfter, validBefore } = authorization;
  return account.signTypedData({
    domain: domainOf(chain),
    types: TOKEN_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from,
      to,
      nonce,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
    },
  });
}

/** Call data that moves the money of an authorization. */
export function transferCall(authorization: Authorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature] as const;
  return encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transferWithAuthorization', args });
}

/** Call data by which a payer cancels a nonce. */
export async function cancelCall(account: PrivateKeyAccount, chain: Domain, nonce: Hex): Promise<Hex> {
  const { address } = account;
  const signature = await account.signTypedData({
    domain: domainOf(chain),
    types: TOKEN_TYPES,
    primaryType: 'CancelAuthorization',
    message: { authorizer: address, nonce },
  });
  return encodeFunctionData({ abi: TOKEN_ABI, functionName: 'cancelAuthorization', args: [address, nonce, signature] });
}

function domainOf({ chainId, token }: Domain) {
  return { name: token.name, version: token.version, chainId, verifyingContract: token.address };
}
