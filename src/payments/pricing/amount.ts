/** Prices and exact money: decimal strings in display units outside, `bigint` base units inside. */

import type { PriceRule } from './by-input.ts';

/** One price of a resource, in the asset of one entry of `payments.x402`. */
export interface Price {
  /** Display units, as configured. */
  readonly amount: string;
  readonly currency: string;
  /** Base units. */
  readonly units: bigint;
  /** Index of the entry of `payments.x402`; absent: the first. */
  readonly entry?: number;
}

/** The price of a call. */
export type Pricing =
  | { readonly type: 'free' }
  | (Price & {
      readonly type: 'fixed';
      /** The backend answers before the money moves; absent: the money moves first. */
      readonly settle?: 'after';
      /** Prices in further entries, in the merchant's order; absent: none. */
      readonly others?: readonly Price[];
      /** Prices in entries that are not offered, which find earlier payments; absent: none. */
      readonly ended?: readonly Price[];
      /** How the price follows the input: amounts and units are then the lowest. Absent: not. */
      readonly by?: PriceRule;
    });

/** The prices of a call in the order in which offers have them; none for a free one. */
export function pricesOf(pricing: Pricing): readonly Price[] {
  return pricing.type === 'free' ? [] : [pricing, ...(pricing.others ?? [])];
}

/** Prices for a reader, such as `0.01 USDC or 0.009 EURC`: equal ones on several networks once. */
export function priceText(prices: readonly Pick<Price, 'amount' | 'currency'>[]): string {
  return [...new Set(prices.map(({ amount, currency }) => `${amount} ${currency}`))].join(' or ');
}

/** Longest amount text, characters: 78 digits of 2^256, a point, and room for trailing zeros. */
export const MAX_AMOUNT_LENGTH = 160;
/** Most decimals an asset may have here; tokens in use have 0 to 24. */
const MAX_DECIMALS = 36;
/** Amounts are uint256 on chain: the first value that does not fit. */
const UINT256_LIMIT = 1n << 256n;
const GRAMMAR = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/**
 * The fault of a text that is no amount: `malformed` (sign, exponent, leading zero, bare point,
 * other digits), `too_long` to be read, `too_precise` for the asset (a non-zero digit would be
 * lost), `too_large` for a uint256. The message never quotes the text.
 */
export type AmountFault = 'malformed' | 'too_long' | 'too_precise' | 'too_large';

const FAULTS: Readonly<Record<AmountFault, string>> = {
  malformed: 'is not a decimal number such as "0.01" (digits and at most one point, no sign, no exponent)',
  too_long: `is longer than ${MAX_AMOUNT_LENGTH} characters`,
  too_precise: 'has more decimals than the asset',
  too_large: 'does not fit in 256 bits',
};

export class AmountError extends Error {
  readonly reason: AmountFault;

  constructor(reason: AmountFault) {
    super(`the amount ${FAULTS[reason]}`);
    this.name = 'AmountError';
    this.reason = reason;
  }
}

/**
 * Display units to base units: `("0.01", 6)` is `10000n`. Excess decimals are accepted only when
 * they are zeros: nothing is ever rounded, because a rounded price is a wrong price.
 * @throws AmountError for the text, RangeError for decimals outside 0 to 36 (a bug of the caller)
 */
export function parseAmount(text: string, decimals: number): bigint {
  checkDecimals(decimals);
  if (text.length > MAX_AMOUNT_LENGTH) throw new AmountError('too_long');
  const match = GRAMMAR.exec(text);
  if (match === null) throw new AmountError('malformed');
  const [, whole = '', fraction = ''] = match;
  if (/[^0]/.test(fraction.slice(decimals))) throw new AmountError('too_precise');
  const units = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
  if (units >= UINT256_LIMIT) throw new AmountError('too_large');
  return units;
}

/**
 * Base units to display units in the one shortest spelling: `(10000n, 6)` is `"0.01"`.
 * @throws RangeError for negative units, units above a uint256 or decimals outside 0 to 36 (a bug
 * of the caller)
 */
export function formatAmount(units: bigint, decimals: number): string {
  checkDecimals(decimals);
  if (units < 0n || units >= UINT256_LIMIT) throw new RangeError('base units must fit in a uint256');
  const digits = units.toString().padStart(decimals + 1, '0');
  const point = digits.length - decimals;
  const fraction = digits.slice(point).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, point) : `${digits.slice(0, point)}.${fraction}`;
}

function checkDecimals(decimals: number): void {
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > MAX_DECIMALS)
    throw new RangeError(`decimals must be an integer from 0 to ${MAX_DECIMALS}`);
}

/** Base units of one asset in those of another, rounded up where it has fewer decimals. */
export function rescaled(units: bigint, from: number, to: number): bigint {
  const factor = 10n ** BigInt(Math.abs(to - from));
  return to >= from ? units * factor : (units + factor - 1n) / factor;
}
