/** Checks the checkout in a closed mandate (ap2 7.6, step 11): its signer, merchant and times. */

import { hash } from 'node:crypto';
import type { PublicJwk } from '../../../crypto/signing-key.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { text } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import { readToken, type Token } from '../token/jws.ts';
import type { VerificationKey } from '../trust/issuer.ts';
import { publicKeyOf, verifySignature } from '../trust/keys.ts';
import { type CheckoutClaims, readCheckoutClaims } from './checkout-claims.ts';
import type { IssuedCheckouts } from './checkout-mint.ts';

/** Not `ap2-receipt+jwt`: the same key signs receipts, and none may pass for a checkout. */
const TYPES: ReadonlySet<Json | undefined> = new Set(['checkout+jwt', 'JWT']);

/** The checkout that a closed mandate agrees to. */
export interface CheckedCheckout {
  readonly hash: string;
  readonly claims: CheckoutClaims;
}

interface CheckoutCheckParts {
  readonly profile: Ap2Profile;
  readonly keys: CheckoutKeys;
  readonly minted: IssuedCheckouts;
}

/**
 * The checkout is signed by a checkout key, is for this merchant and has not expired. What is
 * bought is compared later. `now`: unix seconds. The returned function throws Refused.
 */
export function createCheckoutCheck({ profile, keys, minted }: CheckoutCheckParts) {
  return function checkCheckout(closed: JsonObject, now: number): CheckedCheckout {
    const agreed = text(closed['checkout_hash']);
    const jwt = text(closed['checkout_jwt']);
    const digest = hash('sha256', jwt, 'base64url');
    if (digest !== agreed) throw new Refused('checkout_hash_mismatch');
    const claims = readCheckoutClaims(signedClaims(jwt, minted.has(digest, now), keys));
    checkParties(claims, profile);
    checkTimes(claims, profile.clockSkewSeconds, now);
    return { hash: digest, claims };
  };
}

/** @throws Refused checkout_signature_invalid, or checkout_invalid for inexact numbers */
function signedClaims(jwt: string, own: boolean, keys: CheckoutKeys): JsonObject {
  const reading = readToken(jwt);
  if (!reading.ok)
    throw new Refused(reading.reason === 'claims_invalid' ? 'checkout_invalid' : 'checkout_signature_invalid');
  const { token } = reading;
  if (!own && !keys.signed(token)) throw new Refused('checkout_signature_invalid');
  return token.claims;
}

function checkParties({ iss, aud }: CheckoutClaims, { issuer, audience }: Ap2Profile): void {
  if (iss !== issuer || aud !== audience) throw new Refused('checkout_invalid');
}

function checkTimes({ iat, exp, nbf = iat }: CheckoutClaims, skew: number, now: number): void {
  if (Math.max(iat, nbf) > now + skew) throw new Refused('not_yet_valid');
  if (now >= exp + skew) throw new Refused('checkout_expired');
}

/** The gateway's own key and those that the operator added. None may root a mandate (ap2 7.5). */
interface CheckoutKeys {
  /** Whether the key that the token names signed it, as a checkout. */
  signed(token: Token): boolean;
}

/** @throws Refused for a key that cannot verify, Error for two of one id: a wrong configuration */
export function createCheckoutKeys(trusted: readonly PublicJwk[]): CheckoutKeys {
  const keys = new Map<string, VerificationKey>();
  for (const jwk of trusted) {
    if (keys.has(jwk.kid)) throw new Error('two checkout keys have one kid');
    const json: Json = { ...jwk };
    keys.set(jwk.kid, publicKeyOf(json));
  }
  return {
    signed({ header, signingInput, signature }) {
      const { alg, typ, kid, crit, b64 } = header;
      if (alg !== 'ES256' || !TYPES.has(typ) || typeof kid !== 'string') return false;
      if (crit !== undefined || b64 !== undefined) return false;
      const key = keys.get(kid);
      return key?.alg === 'ES256' && verifySignature(key, signingInput, signature);
    },
  };
}
