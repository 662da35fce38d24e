import { createHash } from 'node:crypto';
import { readAccountSignature } from '../evm/signature.ts';
import type { Proof } from '../wire/rail.ts';

/** 132 bits of a digest, base64url: enough that nobody finds a second proof for it, and short where thousands are remembered. */
const DIGEST_CHARACTERS = 22;

/**
 * What tells one signed authorization from another with the same replay key: all that is signed, and the signature in one spelling. A copy
 * whose signature was replaced, or that says another window, is another proof: what is known of the one says nothing of the other.
 */
export function proofDigest({ payId, payload }: Proof): string {
  const { signature, authorization } = payload.payload;
  const { to, value, validAfter, validBefore } = authorization;
  const spelled = readAccountSignature(signature)?.canonical ?? signature.toLowerCase();
  return createHash('sha256')
    .update([payId, to.toLowerCase(), value, validAfter, validBefore, spelled].join('|'))
    .digest('base64url')
    .slice(0, DIGEST_CHARACTERS);
}
