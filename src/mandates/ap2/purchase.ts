/**
 * The data that a mandate is checked against: the purchase, its digest and its price in minor
 * units, and the profile of the merchant (ap2 7.3, ap2 14).
 */

import { hash } from 'node:crypto';
import type { JsonObject } from '../../json/json.ts';
import { canonicalJson } from '../../json/json.ts';
import type { CheckoutKeySettings } from './checkout.ts';
import type { IssuerSettings } from './issuers.ts';

export interface Ap2Profile {
  /** `aud` of hops and checkouts, exact text. */
  readonly audience: string;
  /** `iss` of checkouts and receipts. */
  readonly issuer: string;
  readonly merchant: { readonly id: string; readonly name: string; readonly website?: string };
  /** Seconds; applied once a comparison. */
  readonly clockSkewSeconds: number;
  readonly maxPresentationAgeSeconds: number;
  readonly maxEnvelopeBytes: number;
  /** Algorithms of mandates: ES256, and what the operator added. */
  readonly algorithms: ReadonlySet<string>;
  /** How long a checkout that is handed out can be used, seconds. */
  readonly checkoutTtlSeconds: number;
  /** Digits behind the point of each currency that a purchase can have. */
  readonly exponents: ReadonlyMap<string, number>;
  readonly policy: {
    readonly paymentMandate: 'optional' | 'required';
    readonly bindPaymentNonce: boolean;
  };
}

/** `authorization.ap2` after every check. */
export interface Ap2Config {
  readonly profile: Ap2Profile;
  readonly issuers: readonly IssuerSettings[];
  readonly checkout: CheckoutKeySettings;
}

/** The most minor units that JSON can hold exactly. */
const MAX_MINOR_UNITS = Number.MAX_SAFE_INTEGER;
/** No sign, no exponent, no leading zero. */
const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/** The call as the gateway resolved it. Nothing of it was taken from the mandate. */
export interface Purchase {
  readonly resourceId: string;
  /** The resource's name, the title of the one line item. */
  readonly title: string;
  /** The input as the caller sent it, without the members `_payment` and `_authorization`. */
  readonly input: JsonObject;
  /** Display units as configured; `0` for a free resource. */
  readonly price: { readonly amount: string; readonly currency: string };
  /** Undefined for a free resource: the method of its checkout is `none`. */
  readonly payment: PurchasePayment | undefined;
}

/** How the purchase is paid. Addresses in any case. */
export interface PurchasePayment {
  readonly method: 'x402';
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** From the verified proof; undefined while a challenge is made. */
  readonly payer: string | undefined;
  /** The EIP-3009 nonce of the verified proof, `0x` and 64 hexadecimal digits. */
  readonly nonce: string | undefined;
}

/** base64url of SHA-256 over the canonical form (RFC 8785) of an input without reserved members. */
export function inputHash(input: JsonObject): string {
  return hash('sha256', canonicalJson(input), 'base64url');
}

/** Minor units of the price. @throws Error for a currency that the profile lacks: a bug */
export function unitsOf({ price }: Purchase, { exponents }: Ap2Profile): number {
  const exponent = exponents.get(price.currency);
  const units = exponent === undefined ? undefined : minorUnits(price.amount, exponent);
  if (units === undefined) throw new Error(`the price has no minor units in ${price.currency}`);
  return units;
}

/**
 * Major units as decimal text to minor units: `("0.01", 6)` is `10000`. Undefined for another form,
 * more digits than the currency has, or more than 2^53 - 1: nothing is rounded.
 */
export function minorUnits(major: string, exponent: number): number | undefined {
  const match = DECIMAL.exec(major);
  if (match === null) return undefined;
  const [, whole = '', fraction = ''] = match;
  if (/[^0]/.test(fraction.slice(exponent))) return undefined;
  const units = Number(whole + fraction.slice(0, exponent).padEnd(exponent, '0'));
  return units <= MAX_MINOR_UNITS ? units : undefined;
}

/**
 * `budget.max` to minor units. It is a JSON number of major units, whose shortest decimal text is
 * what was meant: `0.29 * 100` is not 29 in binary fractions. Undefined where that text has an
 * exponent or too many digits.
 */
export function minorUnitsOfNumber(major: number, exponent: number): number | undefined {
  return minorUnits(String(major), exponent);
}

/** Whether two addresses are one number: the case of letters is at most a checksum. */
export function sameAddress(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one.toLowerCase() === other.toLowerCase();
}
