/** Signed payments of the load generator: each is right, and each is used once. */

import { randomBytes, randomInt } from 'node:crypto';
import { createRequire } from 'node:module';
import { privateKeyToAddress } from 'viem/accounts';
import { bytesHex } from '../../src/payments/x402/evm/abi-words.ts';
import { authorizationDigest, domainSeparator } from '../../src/payments/x402/evm/typed-data.ts';
import type { Question } from './contestant.ts';

/** What an offer of a 402 names; the other members are repeated as they came. */
interface Accepted {
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: { readonly name: string; readonly version: string };
}

/** The PAYMENT-REQUIRED document of a contestant. */
export interface Challenge {
  readonly resource: object;
  readonly accepts: readonly Accepted[];
  readonly extensions?: object;
}

/** A key that pays. */
export interface Payer {
  readonly key: Buffer;
  readonly address: string;
}

/** The part of libsecp256k1 that is used: 40 us a signature, where JavaScript takes 350. */
interface Curve {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
}

const KEY_BYTES = 32;
const NONCE_BYTES = 32;
/** Official clients begin the window of a payment this long ago, seconds. */
const VALID_BEFORE_NOW = 600;
/** `v` of an account's signature is this plus the recovery id. */
const V_OFFSET = 27;

/** `count` fresh keys. */
export function freshPayers(count: number): readonly Payer[] {
  return Array.from({ length: count }, () => {
    const key = randomBytes(KEY_BYTES);
    return { key, address: privateKeyToAddress(`0x${key.toString('hex')}`) };
  });
}

/** The challenge of a contestant. @throws Error when it does not ask for a payment */
export async function challengeOf(
  origin: string,
  { path, headers, body }: Pick<Question, 'path' | 'headers' | 'body'>,
): Promise<Challenge> {
  const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  const required = answer.headers.get('payment-required');
  if (answer.status !== 402 || required === null) throw new Error(`answered ${answer.status} without a challenge`);
  return JSON.parse(Buffer.from(required, 'base64').toString()) as Challenge;
}

/**
 * Values of PAYMENT-SIGNATURE for a challenge, each with a nonce of its own, by the payers in turn.
 * The official client makes the same documents, at a hundred times the cost.
 * @throws Error when the challenge offers nothing
 */
export function signProofs(challenge: Challenge, payers: readonly Payer[], count: number): readonly string[] {
  const { resource, extensions } = challenge;
  const [accepted] = challenge.accepts;
  if (accepted === undefined) throw new Error('the challenge offers nothing');
  const { ecdsaSign } = createRequire(import.meta.url)('secp256k1') as Curve;
  const digest = authorizationDigest(
    domainSeparator({
      ...accepted.extra,
      chainId: Number(accepted.network.split(':')[1]),
      verifyingContract: accepted.asset,
    }),
  );
  const now = Math.floor(Date.now() / 1_000);
  const terms = {
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - VALID_BEFORE_NOW),
    validBefore: String(now + accepted.maxTimeoutSeconds),
  };
  const said = JSON.stringify({ x402Version: 2, resource, accepted, ...(extensions && { extensions }) });
  const first = randomInt(payers.length);
  return Array.from({ length: count }, (_, nth) => {
    const payer = payers[(first + nth) % payers.length];
    if (payer === undefined) throw new Error('no payers');
    const { key, address } = payer;
    const authorization = { from: address, ...terms, nonce: bytesHex(randomBytes(NONCE_BYTES)) };
    const { signature, recid } = ecdsaSign(digest(authorization), key);
    const signed = `${bytesHex(signature)}${(V_OFFSET + recid).toString(16)}`;
    const payload = JSON.stringify({ signature: signed, authorization });
    return Buffer.from(`${said.slice(0, -1)},"payload":${payload}}`).toString('base64');
  });
}
