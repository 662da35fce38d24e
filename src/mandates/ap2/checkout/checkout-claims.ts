/** Reads the claims of a Checkout JWT (ap2 7.2), which a mandate agrees to. */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { LAST_TIME } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';

/** The profile of checkouts. */
export const CHECKOUT_PROFILE = 'agent-commerce/ap2/checkout/v1';
/** `payment_method` of a checkout that costs nothing. */
export const NO_PAYMENT = 'none';

/** What a checkout is for. */
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
export interface CommerceClaims {
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
export function readCheckoutClaims(claims: JsonObject): CheckoutClaims {
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
    commerce: commerceOf(claims['agent_commerce']),
  };
}

function commerceOf(value: Json | undefined): CommerceClaims {
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
