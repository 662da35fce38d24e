import { createHash } from 'node:crypto';

/**
 * What the ledger keeps of a caller's idempotency key (CONTRACT 4.4): SHA-256 hex over payId and key. The proof becomes public with
 * its transaction, the key never does, so it alone tells the buyer from an onlooker; therefore it is not kept in clear.
 */
export function keyDigest(payId: string, key: string): string {
  return createHash('sha256').update(`${payId}\0${key}`).digest('hex');
}

/**
 * What the ledger keeps of the protocol's own name for the paying message (`retryHint` of a call): SHA-256 hex, never equal to the
 * digest of a key. A name may be easy to guess, which is why it opens an answer for minutes where a key opens it for a day.
 */
export function hintDigest(payId: string, hint: string): string {
  return createHash('sha256').update(`hint\0${payId}\0${hint}`).digest('hex');
}
