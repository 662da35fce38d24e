import { createHash } from 'node:crypto';

/**
 * What the ledger keeps of a caller's idempotency key (contract 4.4): SHA-256 hex over payId and key. The proof becomes public with
 * its transaction, the key never does, so it alone tells the buyer from an onlooker; therefore it is not kept in clear.
 */
export function keyDigest(payId: string, key: string): string {
  return createHash('sha256').update(`${payId}\0${key}`).digest('hex');
}

/** What the ledger keeps of the token that came with the proof (contract 4.5): SHA-256 hex, never equal to the digest of a key. */
export function tokenDigest(payId: string, token: string): string {
  return createHash('sha256').update(`token\0${payId}\0${token}`).digest('hex');
}

/** What tells that two purchases showed one token: SHA-256 hex over the token alone. */
export function tokenId(token: string): string {
  return createHash('sha256').update(`token id\0${token}`).digest('hex');
}
