/** Signed payments of the load generator: each is right, and each is used once. */

import { randomBytes, randomInt } from 'node:crypto';
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import { privateKeyToAddress } from 'viem/accounts';
import { bytesHex } from '../../src/payments/x402/evm/calldata.ts';
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
interface Challenge {
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

type Asked = Pick<Question, 'path' | 'headers' | 'body'>;

/** Challenges that are asked for at a time. */
const ASKED_AT_ONCE = 32;
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
async function challengeOf(origin: string, { path, headers, body }: Asked): Promise<Challenge> {
  const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  const required = answer.headers.get('payment-required');
  if (answer.status !== 402 || required === null) throw new Error(`answered ${answer.status} without a challenge`);
  return JSON.parse(Buffer.from(required, 'base64').toString()) as Challenge;
}

/** A challenge for each proof, as a client has it; one for all where they are all the same. */
async function challengesOf(origin: string, asked: Asked, count: number): Promise<readonly Challenge[]> {
  const challenges = [await challengeOf(origin, asked)];
  const another = await challengeOf(origin, asked);
  if (isDeepStrictEqual(another, challenges[0])) return challenges;
  const asking = Array.from({ length: ASKED_AT_ONCE }, async () => {
    while (challenges.length < count) challenges.push(await challengeOf(origin, asked));
  });
  await Promise.all(asking);
  return challenges;
}

/**
 * `count` values of PAYMENT-SIGNATURE for challenges of a contestant, each with a nonce of its own,
 * by the payers in turn.
 * @throws Error when it asks for no payment, or offers nothing
 */
export async function signedProofs(
  origin: string,
  asked: Asked,
  payers: readonly Payer[],
  count: number,
): Promise<readonly string[]> {
  const challenges = await challengesOf(origin, asked, count);
  const curve = createRequire(import.meta.url)('secp256k1') as Curve;
  const first = randomInt(payers.length);
  return Array.from({ length: count }, (_, nth) => {
    const challenge = challenges[nth % challenges.length];
    const payer = payers[(first + nth) % payers.length];
    if (challenge === undefined || payer === undefined) throw new Error('no payers');
    return signed(challenge, payer, curve);
  });
}

/** The official client makes the same document, at a hundred times the cost. */
function signed({ resource, accepts, extensions }: Challenge, { key, address }: Payer, curve: Curve): string {
  const [accepted] = accepts;
  if (accepted === undefined) throw new Error('the challenge offers nothing');
  const domain = domainSeparator({
    ...accepted.extra,
    chainId: Number(accepted.network.split(':')[1]),
    verifyingContract: accepted.asset,
  });
  const now = Math.floor(Date.now() / 1_000);
  const authorization = {
    from: address,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - VALID_BEFORE_NOW),
    validBefore: String(now + accepted.maxTimeoutSeconds),
    nonce: bytesHex(randomBytes(NONCE_BYTES)),
  };
  const { signature, recid } = curve.ecdsaSign(authorizationDigest(domain)(authorization), key);
  const payload = { signature: `${bytesHex(signature)}${(V_OFFSET + recid).toString(16)}`, authorization };
  const proof = { x402Version: 2, resource, accepted, ...(extensions && { extensions }), payload };
  return Buffer.from(JSON.stringify(proof)).toString('base64');
}
