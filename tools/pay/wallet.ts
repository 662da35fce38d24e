/** The key of a buyer, and payments that it signs with the official client. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { UsageError } from '../../src/cli/program.ts';
import type { Environment } from '../../src/config/document/parse.ts';
import { LOCAL_CHAIN_ID, TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { isPrivateKey, isPublishedKey } from '../../src/payments/x402/evm/account.ts';
import type { Challenge, SignedPayment } from './channel.ts';
import type { Offer } from './offer.ts';

/** A buyer. Its key is in no message and no output. */
export interface Wallet {
  readonly address: string;
  /** Signs exactly this offer of the challenge. Moves nothing yet. */
  sign(challenge: Challenge, offer: Offer): Promise<SignedPayment>;
}

/**
 * The key in `keyFile`, else in ACG_PAY_KEY, else on the local chain that of the TEST buyer.
 * @throws UsageError where there is none, or none that may be used on this chain
 */
export function openWallet(chainId: number, keyFile: string | undefined, env: Environment): Wallet {
  const { key, from } = foundKey(chainId, keyFile, env);
  if (!/^0x[0-9a-f]{64}$/i.test(key) || !isPrivateKey(key))
    throw new UsageError(`${from} is no private key: 0x and 64 hexadecimal digits are wanted`);
  if (isPublishedKey(key, chainId))
    throw new UsageError(
      `${from} has a key that is public, for development on eip155:${LOCAL_CHAIN_ID}: it pays nowhere else`,
    );
  const account = privateKeyToAccount(key as `0x${string}`);
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  // The amount was shown and agreed to; the client's own limits know published stablecoins only.
  client.setSpendControls(false);
  return {
    address: account.address,
    async sign({ document }, { requirements }) {
      const payload = await client.createPaymentPayload({ ...document, accepts: [requirements] });
      return { proof: encodePaymentSignatureHeader(payload), idempotencyKey: randomUUID() };
    },
  };
}

/** Tells for which chains `openWallet` finds a key. */
export function keyFor(keyFile: string | undefined, env: Environment): (chainId: number) => boolean {
  const isGiven = keyFile !== undefined || (env['ACG_PAY_KEY']?.trim() ?? '') !== '';
  return (chainId) => isGiven || chainId === LOCAL_CHAIN_ID;
}

function foundKey(chainId: number, keyFile: string | undefined, env: Environment) {
  if (keyFile !== undefined) return { key: readFileSync(keyFile, 'utf8').trim(), from: keyFile };
  const key = env['ACG_PAY_KEY']?.trim();
  if (key !== undefined && key !== '') return { key, from: 'ACG_PAY_KEY' };
  if (chainId === LOCAL_CHAIN_ID) return { key: TEST_BUYER.key, from: 'the TEST buyer' };
  throw new UsageError('there is no key to pay with: set ACG_PAY_KEY, or name a file with --key-file');
}
