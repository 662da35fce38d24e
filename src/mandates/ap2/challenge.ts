/**
 * The parts of answers about mandates: the demand for one, which is the member `authorization` (ap2
 * 7.4), and the signed receipt that one was used or refused (ap2 13).
 */

import type { SigningKey } from '../../crypto/signing-key.ts';
import { CHECKOUT_PROFILE, type CheckoutMintParts, createCheckoutMint } from './checkout.ts';
import { CHECKOUT_CONSTRAINTS } from './checkout-constraints.ts';
import { PAYMENT_CONSTRAINTS } from './payment-mandate.ts';
import type { Ap2Profile, Purchase } from './purchase.ts';
import { type MandateReference, REASONS, type Reason } from './reasons.ts';
import { createCompactSigner } from './sd-jwt.ts';

/** The version of AP2 that a challenge names. */
const AP2_VERSION = '0.2.0';
/** Every type of constraint that this verifier knows; challenge and discovery publish them. */
export const CONSTRAINTS: readonly string[] = [...CHECKOUT_CONSTRAINTS, ...PAYMENT_CONSTRAINTS];

/** A payment mandate for a call that pays nothing is refused. */
const FREE_POLICY = { paymentMandate: 'none', bindPaymentNonce: false } satisfies Record<
  keyof Ap2Profile['policy'],
  unknown
>;

interface ChallengerParts extends CheckoutMintParts {
  /** Ids of the issuers that are trusted. */
  readonly issuers: readonly string[];
}

/**
 * Makes `{"required":[{...}]}`: a fresh checkout of a purchase, and what a mandate for it needs.
 * `others`: the same purchase in further assets; each has a checkout in `alternatives`. `nowMs`:
 * unix milliseconds. Constant members are serialised once.
 */
export function createChallenger(parts: ChallengerParts) {
  const { profile, issuers } = parts;
  const mint = createCheckoutMint(parts);
  const { audience, algorithms, maxEnvelopeBytes, policy } = profile;
  const before = JSON.stringify({ method: 'ap2', version: AP2_VERSION, profile: CHECKOUT_PROFILE, audience });
  const after = JSON.stringify({ issuers, constraints: CONSTRAINTS, maxEnvelopeBytes });
  const paid = JSON.stringify({ algorithms: [...algorithms], ...policy });
  const free = JSON.stringify({ algorithms: [...algorithms], ...FREE_POLICY });
  const checkout = (purchase: Purchase, nowMs: number) => {
    const { jti, jwt, hash, exp } = mint(purchase, nowMs);
    return { nonce: jti, checkoutJwt: jwt, checkoutHash: hash, expiresAt: new Date(exp * 1_000).toISOString() };
  };
  return function challenge(purchase: Purchase, others: readonly Purchase[], nowMs: number): string {
    const alternatives = others.map((other) => {
      const { network, asset } = other.payment ?? {};
      return { network, asset, ...checkout(other, nowMs) };
    });
    const fresh = JSON.stringify({
      ...checkout(purchase, nowMs),
      ...(alternatives.length === 0 ? {} : { alternatives }),
    });
    const members = [before, fresh, purchase.payment === undefined ? free : paid, after].map(inner).join(',');
    return `{"required":[{${members}}]}`;
  };
}

/** The members of a JSON object without its braces. */
function inner(object: string): string {
  return object.slice(1, -1);
}

/** `issuer`: `iss` of the receipts. The key is that of the checkouts; `typ` tells the two apart. */
export function createReceiptSigner({ issuer, key }: { readonly issuer: string; readonly key: SigningKey }) {
  const signed = createCompactSigner('ap2-receipt+jwt', key);
  const about = ({ reference, referenceSdHash }: MandateReference) => ({
    reference,
    reference_sd_hash: referenceSdHash,
  });
  const head = (nowMs: number) => ({ iss: issuer, iat: Math.floor(nowMs / 1_000) });
  return {
    /** `id`: of the call that a mandate was used for. `transaction`: the one that paid for it. */
    accepted(
      mandate: MandateReference,
      { id, transaction }: { readonly id: string; readonly transaction?: string },
      nowMs: number,
    ): string {
      const paid = transaction === undefined ? {} : { network_confirmation_id: transaction };
      const success = { status: 'Success', result: 'success' };
      return signed({ ...head(nowMs), ...success, ...about(mandate), order_id: id, ...paid });
    },
    rejected(mandate: MandateReference, reason: Reason, nowMs: number): string {
      const { ap2Error } = REASONS[reason];
      // AP2 has no error for some reasons: then the description alone names the reason.
      const error = ap2Error === undefined ? {} : { error: ap2Error };
      const failure = { status: 'Error', result: 'error' };
      return signed({ ...head(nowMs), ...failure, ...about(mandate), ...error, error_description: reason });
    },
  };
}
