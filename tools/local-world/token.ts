/** How the token of the local chain is deployed. */

import type { Address } from 'viem';

/** An EIP-3009 token, with the EIP-712 domain its authorizations are signed for. */
export interface Token {
  readonly address: Address;
  readonly name: string;
  readonly version: string;
  readonly decimals: 6;
}

/** Creates nothing but the token, so that its address follows (CREATE with nonce 0). */
export const TOKEN_DEPLOYER: Address = '0x00000000000000000000000000000000acac0000';
/** What prices call it. */
export const LOCAL_CURRENCY = 'TUSD';
