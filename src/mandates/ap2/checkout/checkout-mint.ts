/** Signs the Checkout JWT of a challenge, and remembers which ones this process signed. */

import { hash, randomBytes } from 'node:crypto';
import type { SigningKey } from '../../../crypto/signing-key.ts';
import type { JsonObject } from '../../../json/types.ts';
import { RecentMap } from '../../../time/recent-map.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { inputHash, type Purchase, unitsOf } from '../model/purchase.ts';
import { createCompactSigner } from '../token/jws.ts';
import { CHECKOUT_PROFILE, NO_PAYMENT } from './checkout-claims.ts';

/** Most checkouts that are remembered (ap2 16). */
const MAX_MINTED = 10_000;
/** 128 random bits: the nonce that an agent has to sign. */
const JTI_BYTES = 16;
const ID_BYTES = 6;

/** A checkout to be handed out. */
interface Checkout {
  readonly jwt: string;
  /** base64url of SHA-256 over the ASCII of `jwt`. */
  readonly hash: string;
  readonly jti: string;
  /** Unix seconds. */
  readonly exp: number;
}

export interface CheckoutMintParts {
  readonly profile: Ap2Profile;
  readonly key: SigningKey;
  readonly minted: IssuedCheckouts;
}

/**
 * Signs checkouts (ap2 7.2, ap2 7.3). A checkout binds the whole call, and its `jti` is the nonce
 * of a mandate for it, so a challenge stores nothing. `nowMs`: unix milliseconds.
 */
export function createCheckoutMint({ profile, key, minted }: CheckoutMintParts) {
  const { issuer, audience, checkoutTtlSeconds } = profile;
  const signed = createCompactSigner('checkout+jwt', key);
  const merchant = { ...profile.merchant };
  return function mint(purchase: Purchase, nowMs: number): Checkout {
    const now = Math.floor(nowMs / 1_000);
    const random = randomBytes(JTI_BYTES + ID_BYTES);
    const jti = random.toString('base64url', 0, JTI_BYTES);
    const exp = now + checkoutTtlSeconds;
    const jwt = signed({
      iss: issuer,
      aud: audience,
      iat: now,
      exp,
      // `iat` alone would seem older than a register that began within its second, which would
      // refuse it.
      iat_ms: nowMs,
      jti,
      id: `chk_${random.toString('base64url', JTI_BYTES)}`,
      status: 'ready_for_complete',
      currency: purchase.price.currency,
      merchant,
      ...cartOf(purchase, unitsOf(purchase, profile)),
      links: [],
      agent_commerce: commerceOf(purchase),
    });
    const digest = hash('sha256', jwt, 'base64url');
    minted.add(digest, exp);
    return { jwt, hash: digest, jti, exp };
  };
}

/** One item, once: the resource. */
function cartOf({ resourceId, title }: Purchase, units: number): JsonObject {
  const totals = [{ type: 'total', amount: units }];
  return {
    line_items: [{ id: 'li_1', item: { id: resourceId, title, price: units }, quantity: 1, totals }],
    totals,
  };
}

function commerceOf({ resourceId, input, price, payment }: Purchase): JsonObject {
  const call = {
    profile: CHECKOUT_PROFILE,
    resource_id: resourceId,
    input_hash: inputHash(input),
    amount: price.amount,
    currency: price.currency,
  };
  if (payment === undefined) return { ...call, payment_method: NO_PAYMENT };
  const { method, network, asset, payTo } = payment;
  return { ...call, payment_method: method, network, asset, destination: payTo };
}

/** The checkouts that this process signed, by their hash: it need not verify its own signature. */
export interface IssuedCheckouts {
  /** Notes a checkout; it counts until `exp`, unix seconds. */
  add(hash: string, exp: number): void;
  has(hash: string, now: number): boolean;
}

export function createIssuedCheckouts(): IssuedCheckouts {
  const ends = new RecentMap<number>(MAX_MINTED);
  return {
    add: (hash, exp) => ends.add(hash, exp),
    has: (hash, now) => now < (ends.use(hash) ?? 0),
  };
}
