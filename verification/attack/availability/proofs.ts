/** Signs proofs for calls under load, thousands a second. */

import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { keccak256 } from '../../../src/crypto/keccak.ts';
import { bytesHex } from '../../../src/payments/x402/evm/calldata.ts';
import { authorizationDigest, domainSeparator } from '../../../src/payments/x402/evm/typed-data.ts';
import { encodeHeader } from '../../../src/payments/x402/wire/header-codec.ts';
import type { PaymentRequired, PaymentRequirements } from '../../../src/payments/x402/wire/types.ts';

/** Enough that no payer reaches its own limit of settlements at any load. */
const PAYERS = 1_024;
/**
 * How much longer than offered a proof is valid: all proofs of a run are signed before its clock
 * starts.
 */
const EXCESS_SECONDS = 500;
const KEY_BYTES = 32;
const NONCE_BYTES = 32;
const ADDRESS_FROM = 12;
const V_OFFSET = 27;

/**
 * The part of the native addon that signs: tens of thousands of proofs take seconds, not minutes.
 */
interface NativeSigner {
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
}

/** Signs one more payment, the next payer's: the value of a unique PAYMENT-SIGNATURE header. */
export type NextProof = () => string;

/**
 * Payers with fresh keys that accept the first offer of a challenge. @throws Error when the
 * challenge has no offer, or the addon is missing
 */
export function payersOf({ accepts, resource }: PaymentRequired): NextProof {
  const [offer] = accepts;
  if (offer === undefined) throw new Error('the challenge offers no way to pay');
  const signer = createRequire(import.meta.url)('secp256k1/bindings.js') as NativeSigner;
  const digest = authorizationDigest(separatorOf(offer));
  const payers = Array.from({ length: PAYERS }, () => {
    const key = randomBytes(KEY_BYTES);
    const address = keccak256(signer.publicKeyCreate(key, false).subarray(1)).subarray(ADDRESS_FROM);
    return { key, from: bytesHex(address) };
  });
  const validBefore = String(Math.floor(Date.now() / 1_000) + offer.maxTimeoutSeconds + EXCESS_SECONDS);
  let signed = 0;
  return function nextProof() {
    const payer = payers[signed % PAYERS];
    signed += 1;
    if (payer === undefined) throw new Error('no payer');
    const nonce = bytesHex(randomBytes(NONCE_BYTES));
    const terms = { to: offer.payTo, value: offer.amount, validAfter: '0', validBefore, nonce };
    const authorization = { from: payer.from, ...terms };
    const { signature, recid } = signer.ecdsaSign(digest(authorization), payer.key);
    const vrs = `${bytesHex(signature)}${(V_OFFSET + recid).toString(16)}`;
    const payload = { signature: vrs, authorization };
    return encodeHeader({ x402Version: 2, resource: { url: resource.url }, accepted: offer, payload });
  };
}

function separatorOf({ network, asset, extra }: PaymentRequirements): string {
  const { name, version } = extra;
  if (typeof name !== 'string' || typeof version !== 'string') throw new Error('the offer names no signing domain');
  return domainSeparator({ name, version, chainId: Number(network.split(':')[1]), verifyingContract: asset });
}
