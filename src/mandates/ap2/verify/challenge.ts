/** Writes the demand for a mandate into answers: the member `authorization` (ap2 7.4). */

import { CHECKOUT_PROFILE } from '../checkout/checkout-claims.ts';
import { type CheckoutMintParts, createCheckoutMint } from '../checkout/checkout-mint.ts';
import { CHECKOUT_CONSTRAINTS } from '../constraints/checkout-constraints.ts';
import { PAYMENT_CONSTRAINTS } from '../constraints/payment-constraints.ts';
import type { Ap2Profile } from '../model/profile.ts';
import type { Purchase } from '../model/purchase.ts';

/** The version of AP2 that a challenge names. */
const AP2_VERSION = '0.2.0';
/** Every type of constraint that this verifier knows; challenge and discovery publish them. */
export const CONSTRAINTS: readonly string[] = [...CHECKOUT_CONSTRAINTS, ...PAYMENT_CONSTRAINTS];

/** A payment mandate for a call that pays nothing is refused. */
const FREE_POLICY = { paymentMandate: 'none', bindPaymentNonce: false } satisfies Record<
  keyof Ap2Profile['policy'],
  unknown
>;

interface Challenger {
  /**
   * `{"required":[{...}]}`: a fresh checkout of this purchase, and what a mandate for it needs.
   * `nowMs`: unix milliseconds.
   */
  challenge(purchase: Purchase, nowMs: number): string;
}

interface ChallengerParts extends CheckoutMintParts {
  /** Ids of the issuers that are trusted. */
  readonly issuers: readonly string[];
}

/** Constant members are serialised once. */
export function createChallenger(parts: ChallengerParts): Challenger {
  const { profile, issuers } = parts;
  const mint = createCheckoutMint(parts);
  const { audience, algorithms, maxEnvelopeBytes, policy } = profile;
  const before = JSON.stringify({ method: 'ap2', version: AP2_VERSION, profile: CHECKOUT_PROFILE, audience });
  const after = JSON.stringify({ issuers, constraints: CONSTRAINTS, maxEnvelopeBytes });
  const paid = JSON.stringify({ algorithms: [...algorithms], ...policy });
  const free = JSON.stringify({ algorithms: [...algorithms], ...FREE_POLICY });
  return {
    challenge(purchase, nowMs) {
      const { jti, jwt, hash, exp } = mint(purchase, nowMs);
      const expiresAt = new Date(exp * 1_000).toISOString();
      const fresh = JSON.stringify({ nonce: jti, checkoutJwt: jwt, checkoutHash: hash, expiresAt });
      const members = [before, fresh, purchase.payment === undefined ? free : paid, after].map(inner).join(',');
      return `{"required":[{${members}}]}`;
    },
  };
}

/** The members of a JSON object without its braces. */
function inner(object: string): string {
  return object.slice(1, -1);
}
