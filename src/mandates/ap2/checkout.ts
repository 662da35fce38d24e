/**
 * The Checkout JWT (ap2 7.2): signs it for a challenge, checks the one in a closed mandate (ap2
 * 7.6, step 11), and compares it with the purchase of the call (step 12).
 */

import { hash, randomBytes } from 'node:crypto';
import { type PublicJwk, signingKey as readKey, type SigningKey } from '../../crypto/signing-key.ts';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { RecentMap } from '../../time/recent-map.ts';
import { publicKeyOf, type VerificationKey, verifySignature } from './keys.ts';
import { type Ap2Profile, inputHash, type Purchase, type PurchasePayment, sameAddress, unitsOf } from './purchase.ts';
import { LAST_TIME, text } from './readers.ts';
import { Refused } from './reasons.ts';
import { createCompactSigner, readToken, type Token } from './sd-jwt.ts';

/** The profile of checkouts. */
export const CHECKOUT_PROFILE = 'agent-commerce/ap2/checkout/v1';
/** `payment_method` of a checkout that costs nothing. */
const NO_PAYMENT = 'none';

/** The claims of a checkout that the gateway reads. */
export interface CheckoutClaims {
  readonly iss: string;
  readonly aud: string;
  /** Unix seconds. */
  readonly iat: number;
  readonly exp: number;
  /** `iat`, to the millisecond where `iat_ms` is there, as it is in our own. */
  readonly signedAt: number;
  /** Not in our own; another trusted signer may set it. */
  readonly nbf: number | undefined;
  readonly jti: string;
  readonly currency: string | undefined;
  readonly merchantId: string | undefined;
  /** Undefined: the checkout has no list. */
  readonly lineItems: readonly CartLine[] | undefined;
  /** Minor units of the total; undefined without one. */
  readonly total: number | undefined;
  readonly commerce: CommerceClaims;
}

export interface CartLine {
  readonly itemId: string;
  readonly quantity: number;
}

/** The member `agent_commerce`: the call. */
interface CommerceClaims {
  readonly resourceId: string;
  readonly inputHash: string;
  readonly amount: string;
  readonly currency: string;
  readonly paymentMethod: string;
  readonly network: string | undefined;
  readonly asset: string | undefined;
  readonly destination: string | undefined;
}

const COMMERCE_MEMBERS: ReadonlySet<string> = new Set([
  'profile',
  'resource_id',
  'input_hash',
  'amount',
  'currency',
  'payment_method',
  'network',
  'asset',
  'destination',
]);
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const AMOUNT = /^(0|[1-9][0-9]*)(\.[0-9]+)?$/;
const CAIP_2 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/;

/** Reads the claims of a checkout whose signature is good. @throws Refused checkout_invalid */
function readCheckoutClaims(claims: JsonObject): CheckoutClaims {
  const { iss, aud, iat, iat_ms, exp, nbf, jti, id, status, currency, merchant, line_items, totals, links } = claims;
  demand(optional(id, isText) && (status === undefined || status === 'ready_for_complete'));
  demand(optional(links, Array.isArray));
  demand(isText(jti) && jti.length >= 16 && jti.length <= 128);
  return {
    iss: named(iss),
    aud: named(aud),
    ...signingTimes(second(iat), iat_ms),
    exp: second(exp),
    nbf: nbf === undefined ? undefined : second(nbf),
    jti,
    currency: currency === undefined ? undefined : named(currency),
    merchantId: merchant === undefined ? undefined : merchantId(merchant),
    lineItems: line_items === undefined ? undefined : cartLines(line_items),
    total: totals === undefined ? undefined : totalOf(totals),
    commerce: readCommerce(claims['agent_commerce']),
  };
}

function readCommerce(value: Json | undefined): CommerceClaims {
  demand(isObject(value));
  demand(Object.keys(value).every((name) => COMMERCE_MEMBERS.has(name)));
  const { profile, resource_id, input_hash, amount, currency, payment_method, network, asset, destination } = value;
  demand(profile === CHECKOUT_PROFILE);
  demand(isText(input_hash) && DIGEST.test(input_hash) && isText(amount) && AMOUNT.test(amount));
  demand(network === undefined || (isText(network) && CAIP_2.test(network)));
  return {
    resourceId: named(resource_id),
    inputHash: input_hash,
    amount,
    currency: named(currency),
    paymentMethod: named(payment_method),
    network,
    asset: asset === undefined ? undefined : named(asset),
    destination: destination === undefined ? undefined : named(destination),
  };
}

function merchantId(value: Json): string {
  demand(isObject(value) && isText(value['name']) && optional(value['website'], isText));
  return named(value['id']);
}

function cartLines(value: Json): readonly CartLine[] {
  demand(Array.isArray(value) && value.length > 0);
  return value.map((line: Json) => {
    demand(isObject(line) && isText(line['id']));
    const { item, quantity, totals } = line;
    demand(isObject(item) && isText(item['title']) && isWhole(item['price'], 0) && isWhole(quantity, 1));
    totalOf(totals);
    return { itemId: named(item['id']), quantity };
  });
}

/** The amount of the one total, among other types (subtotal, tax). */
function totalOf(value: Json | undefined): number | undefined {
  demand(Array.isArray(value));
  let total: number | undefined;
  for (const entry of value as readonly Json[]) {
    demand(isObject(entry));
    const { type, amount } = entry;
    demand(isText(type) && typeof amount === 'number' && Number.isSafeInteger(amount));
    if (type !== 'total') continue;
    demand(total === undefined);
    total = amount;
  }
  return total;
}

function second(value: Json | undefined): number {
  demand(isWhole(value, 0) && value <= LAST_TIME);
  return value;
}

/** `inMs`: the moment of `iat` in milliseconds. */
function signingTimes(iat: number, inMs: Json | undefined): Pick<CheckoutClaims, 'iat' | 'signedAt'> {
  if (inMs === undefined) return { iat, signedAt: iat };
  demand(isWhole(inMs, 0) && Math.floor(inMs / 1_000) === iat);
  return { iat, signedAt: inMs / 1_000 };
}

function named(value: Json | undefined): string {
  demand(isText(value) && value !== '');
  return value;
}

function optional(value: Json | undefined, is: (value: Json) => boolean): boolean {
  return value === undefined || is(value);
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string';
}

function isWhole(value: Json | undefined, least: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least;
}

function demand(right: boolean): asserts right {
  if (!right) throw new Refused('checkout_invalid');
}

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
 * of a mandate for it, so a challenge writes nothing to the store. `nowMs`: unix milliseconds.
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

/** Not `ap2-receipt+jwt`: the same key signs receipts, and none may pass for a checkout. */
const TYPES: ReadonlySet<Json | undefined> = new Set(['checkout+jwt', 'JWT']);

/** The checkout that a closed mandate agrees to. */
export interface CheckedCheckout {
  readonly hash: string;
  readonly claims: CheckoutClaims;
}

interface CheckoutCheckParts {
  readonly profile: Ap2Profile;
  readonly signed: SignedCheckout;
  readonly minted: IssuedCheckouts;
}

/**
 * Checks that a checkout is signed by a checkout key, is for this merchant and has not expired. The
 * purchase is compared later. `now`: unix seconds. The returned function throws Refused.
 */
export function createCheckoutCheck({ profile, signed, minted }: CheckoutCheckParts) {
  return function checkCheckout(closed: JsonObject, now: number): CheckedCheckout {
    const agreed = text(closed['checkout_hash']);
    const jwt = text(closed['checkout_jwt']);
    const digest = hash('sha256', jwt, 'base64url');
    if (digest !== agreed) throw new Refused('checkout_hash_mismatch');
    const claims = readCheckoutClaims(signedClaims(jwt, minted.has(digest, now), signed));
    checkParties(claims, profile);
    checkTimes(claims, profile.clockSkewSeconds, now);
    return { hash: digest, claims };
  };
}

/** @throws Refused checkout_signature_invalid, or checkout_invalid for inexact numbers */
function signedClaims(jwt: string, own: boolean, signed: SignedCheckout): JsonObject {
  const reading = readToken(jwt);
  if (!reading.ok)
    throw new Refused(reading.reason === 'claims_invalid' ? 'checkout_invalid' : 'checkout_signature_invalid');
  const { token } = reading;
  if (!own && !signed(token)) throw new Refused('checkout_signature_invalid');
  return token.claims;
}

function checkParties({ iss, aud }: CheckoutClaims, { issuer, audience }: Ap2Profile): void {
  if (iss !== issuer || aud !== audience) throw new Refused('checkout_invalid');
}

function checkTimes({ iat, exp, nbf = iat }: CheckoutClaims, skew: number, now: number): void {
  if (Math.max(iat, nbf) > now + skew) throw new Refused('not_yet_valid');
  if (now >= exp + skew) throw new Refused('checkout_expired');
}

/**
 * Whether the key that a token names signed it, as a checkout: the gateway's own key and those that
 * the operator added. None may root a mandate (ap2 7.5).
 */
type SignedCheckout = (token: Token) => boolean;

/** @throws Refused for a key that cannot verify, Error for two of one id: a wrong configuration */
export function createCheckoutKeys(trusted: readonly PublicJwk[]): SignedCheckout {
  const keys = new Map<string, VerificationKey>();
  for (const jwk of trusted) {
    if (keys.has(jwk.kid)) throw new Error('two checkout keys have one kid');
    const json: Json = { ...jwk };
    keys.set(jwk.kid, publicKeyOf(json));
  }
  return function signedCheckout({ header, signingInput, signature }) {
    const { alg, typ, kid, crit, b64 } = header;
    if (alg !== 'ES256' || !TYPES.has(typ) || typeof kid !== 'string') return false;
    if (crit !== undefined || b64 !== undefined) return false;
    const key = keys.get(kid);
    return key?.alg === 'ES256' && verifySignature(key, signingInput, signature);
  };
}

/**
 * Compares a checkout with the purchase, which was resolved without it: nothing in the checkout
 * changes the purchase. Returns the minor units of the price.
 * @throws Refused
 */
export function checkPurchase(checkout: CheckoutClaims, purchase: Purchase, profile: Ap2Profile): number {
  const { commerce } = checkout;
  if (commerce.resourceId !== purchase.resourceId) throw new Refused('resource_mismatch');
  if (commerce.inputHash !== inputHash(purchase.input)) throw new Refused('input_mismatch');
  // As text: a price has one spelling here, and the person saw this one.
  if (commerce.amount !== purchase.price.amount) throw new Refused('amount_mismatch');
  const { currency } = purchase.price;
  if (commerce.currency !== currency || (checkout.currency ?? currency) !== currency)
    throw new Refused('currency_mismatch');
  const units = unitsOf(purchase, profile);
  // The person sees the total: it must be the price.
  if (checkout.total !== undefined && checkout.total !== units) throw new Refused('amount_mismatch');
  if (!samePayment(commerce, purchase.payment)) throw new Refused('payment_method_mismatch');
  if (checkout.merchantId !== undefined && checkout.merchantId !== profile.merchant.id)
    throw new Refused('payee_mismatch');
  return units;
}

function samePayment(
  { paymentMethod, network, asset, destination }: CommerceClaims,
  payment: PurchasePayment | undefined,
): boolean {
  if (payment === undefined)
    return paymentMethod === NO_PAYMENT && network === undefined && asset === undefined && destination === undefined;
  return (
    paymentMethod === payment.method &&
    network === payment.network &&
    sameAddress(asset, payment.asset) &&
    sameAddress(destination, payment.payTo)
  );
}

/** The keys whose checkouts are accepted. None of them may root a mandate. */
export interface CheckoutKeySettings {
  /** PKCS#8 PEM of a P-256 key: it signs the checkouts and the receipts, and nothing else. */
  readonly signingKey: string;
  /** Undefined: the thumbprint of the key. */
  readonly kid: string | undefined;
  /** Further keys whose checkouts are accepted, for a change of keys. */
  readonly alsoTrust: readonly PublicJwk[];
}

/**
 * The key of checkouts and receipts, and all keys whose checkouts are accepted, the own one first.
 * @throws Error for a key that the configuration must have refused
 */
export function checkoutKeysOf({ signingKey, kid, alsoTrust }: CheckoutKeySettings): {
  readonly own: SigningKey;
  readonly trusted: readonly PublicJwk[];
} {
  const key = readKey(signingKey);
  const own = kid === undefined ? key : { ...key, publicJwk: { ...key.publicJwk, kid } };
  return { own, trusted: [own.publicJwk, ...alsoTrust] };
}
