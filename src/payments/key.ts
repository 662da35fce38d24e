import { createHash } from 'node:crypto';

/**
 * What the ledger keeps of a caller's idempotency key (CONTRACT 4.4): SHA-256 hex over payId and key. The proof becomes public with
 * its transaction, the key never does, so it alone tells the buyer from an onlooker; therefore it is not kept in clear.
 */
export function keyDigest(payId: string, key: string): string {
  return createHash('sha256').update(`${payId}\0${key}`).digest('hex');
}
