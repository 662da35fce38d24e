import { hash } from 'node:crypto';
import type { JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { text } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import { readToken } from '../token/jws.ts';
import { type CheckoutClaims, readCheckoutClaims } from './checkout-claims.ts';
import type { CheckoutKeys } from './checkout-key.ts';
import type { IssuedCheckouts } from './issued-checkouts.ts';

/** The checkout that a closed mandate agrees to, found to be ours and still good. */
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
 * Step 11 of ap2 7.6: the checkout in the closed mandate is signed by a checkout key, is for this merchant and has not expired. What the
 * checkout is for is not checked here. `now`: unix seconds. The returned function throws Refused.
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

/** @throws Refused checkout_signature_invalid, or checkout_invalid for signed numbers that are not exact */
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
