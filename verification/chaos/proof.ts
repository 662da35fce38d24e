/** Signs proofs of a run and encodes them in different ways. */

import { createHash } from 'node:crypto';
import { type Address, encodeFunctionData, type Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { TOKEN_TYPES } from '../../spec/world/authorization.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import type { Seed } from './seed.ts';
import type { ProofStory } from './story.ts';
import type { Challenge, Offer } from './wire.ts';

/** A signed payment before it gets a spelling. */
export interface SignedProof {
  readonly story: ProofStory;
  readonly authorization: Authorization;
  readonly payload: object;
  readonly chain: ChainAccess;
}

/** What a proof says and what it signs, which are the same but for liars. */
export interface Terms {
  readonly accepted: Offer;
  /** Of `accepted`. */
  readonly chain: ChainAccess;
  readonly paid: Offer;
  readonly signedFor: ChainAccess;
}

/**
 * Signs an offer of a challenge with a nonce of the seed; it lasts `lifetimeMs`, or as long as
 * offered.
 */
export async function signProof(
  account: PrivateKeyAccount,
  { accepted, chain, paid, signedFor }: Terms,
  challenge: Challenge,
  seed: Seed,
  lifetimeMs?: number,
): Promise<SignedProof> {
  const now = Math.floor(Date.now() / 1_000);
  const lifetime = lifetimeMs === undefined ? accepted.maxTimeoutSeconds : Math.ceil(lifetimeMs / 1_000);
  const authorization: Authorization = {
    from: account.address,
    to: paid.payTo as Hex,
    value: paid.amount,
    validAfter: '0',
    validBefore: String(now + lifetime),
    nonce: seed.bytes32(),
  };
  const signature = await signTransfer(account, signedFor, authorization);
  const payload = {
    x402Version: 2,
    resource: challenge.resource,
    accepted,
    payload: { signature, authorization },
    ...(challenge.extensions === undefined ? {} : { extensions: challenge.extensions }),
  };
  return { story: storyOf(chain, authorization), authorization, payload, chain };
}

/**
 * A second implementation of contract 4.3 and 4.4, so that a mistake in the gateway's own shows.
 */
function storyOf({ chainId, token }: ChainAccess, { from, nonce }: Authorization): ProofStory {
  const subject = `x402|${chainId}|${token.address}|${from}|${nonce}`.toLowerCase();
  const payId = createHash('sha256').update(subject).digest('hex');
  const merchantKey = `pay_${createHash('sha256').update(payId).digest('base64url').slice(0, 43)}`;
  return {
    nonce,
    payer: from,
    payId,
    merchantKey,
    firstSentAt: undefined,
    lastSentAt: undefined,
    answers: [],
    refusals: [],
    lostAt: [],
    challenges: [],
  };
}

/** Ways to write one and the same proof. */
const SPELLINGS: readonly ((payload: object) => string)[] = [
  (payload) => base64(JSON.stringify(payload)),
  (payload) => base64(JSON.stringify(payload)).replace(/=+$/, ''),
  (payload) => base64(JSON.stringify(payload, undefined, 1)),
  (payload) => base64(JSON.stringify(Object.fromEntries(Object.entries(payload).reverse()))),
  (payload) =>
    base64(
      JSON.stringify(payload).replace(
        /("(?:nonce|signature)":"0x)([0-9a-f]+)/g,
        (_, name, hex) => name + hex.toUpperCase(),
      ),
    ),
];

/** PAYMENT-SIGNATURE in one of the spellings. */
export function spell({ payload }: SignedProof, spelling = 0): string {
  const write = SPELLINGS[spelling % SPELLINGS.length];
  if (write === undefined) throw new Error('no such spelling');
  return write(payload);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

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
