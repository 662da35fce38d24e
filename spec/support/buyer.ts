/** A buyer with the official x402 client. */

import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Address, PrivateKeyAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';

/** A buyer with the official client and a key of its own. */
export interface Buyer {
  readonly address: Address;
  readonly account: PrivateKeyAccount;
  /** Pays a 402 by itself and repeats the request once. */
  readonly fetch: typeof globalThis.fetch;
  /** The official client, for channels other than HTTP. */
  readonly client: x402Client;
  /** Signs a payment for a PaymentRequired document and gives the PAYMENT-SIGNATURE header. */
  pay(paymentRequired: unknown): Promise<string>;
  /** Base units of the token. */
  balance(): Promise<bigint>;
}

/** What a fresh buyer owns, base units (10 of the token). */
const DEFAULT_FUNDS_UNITS = 10_000_000n;

/**
 * A fresh buyer that owns `units` of the chain's token and no gas: under EIP-3009 the payer needs
 * none.
 */
export async function createBuyer(
  chain: Pick<ChainAccess, 'mint' | 'balanceOf'>,
  units: bigint = DEFAULT_FUNDS_UNITS,
): Promise<Buyer> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (units > 0n) await chain.mint(account.address, units);
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  // The client's default limits know published stablecoins only and would refuse the test token.
  client.setSpendControls(false);
  return {
    address: account.address,
    account,
    client,
    fetch: wrapFetchWithPayment(fetch, client),
    pay: async (paymentRequired) =>
      encodePaymentSignatureHeader(await client.createPaymentPayload(paymentRequired as PaymentRequired)),
    balance: () => chain.balanceOf(account.address),
  };
}
