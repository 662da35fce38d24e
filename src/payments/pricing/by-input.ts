/** Prices that follow the input, by a closed set of rules, in integers that are rounded up once. */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { AmountError, MAX_AMOUNT_LENGTH, parseAmount } from './amount.ts';

/** The measure of a value: the number itself, the code points of a text, the items of a list. */
export type Measure = 'number' | 'text' | 'list';

/**
 * How a price follows the input. Amounts are decimal texts in display units, checked at start to be
 * exact in every asset that they are charged in. A pointer (RFC 6901) leads through objects alone.
 */
export type PriceRule = InputRule | QuoteRule;

/** The rules that are computed here, from the validated input alone. */
export type InputRule = UnitRule | TierRule | ChoiceRule;

/** The measure times the amount, from min to max. */
export interface UnitRule {
  readonly kind: 'unit';
  readonly pointer: string;
  /** The price of one unit. */
  readonly amount: string;
  readonly min: string;
  readonly max: string;
  readonly of: Measure;
}

/** The amount of the first step that the measure does not exceed. */
export interface TierRule {
  readonly kind: 'tier';
  readonly pointer: string;
  readonly of: Measure;
  /** Ascending in `upTo`; not empty. */
  readonly steps: readonly { readonly upTo: number; readonly amount: string }[];
}

/** The amount of a text, or of a boolean as `true` or `false`. */
export interface ChoiceRule {
  readonly kind: 'choice';
  readonly pointer: string;
  readonly amounts: Readonly<Record<string, string>>;
}

/** The backend says the price of an input. */
export interface QuoteRule {
  readonly kind: 'quote';
  readonly method: 'POST';
  /** Of the backend, with the prefix of its base URL. */
  readonly path: string;
  readonly min: string;
  readonly max: string;
}

/** The price in base units; or the member that gives none, with words for its caller. */
export type InputPrice =
  | { readonly kind: 'price'; readonly units: bigint }
  | { readonly kind: 'invalid'; readonly pointer: string; readonly message: string };

/** A quote in base units; or its fault in words for the log, which never repeat the answer. */
export type QuotedPrice =
  | { readonly kind: 'price'; readonly units: bigint }
  | { readonly kind: 'fault'; readonly message: string };

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;
const NOUNS: Readonly<Record<Measure, string>> = { number: '', text: ' characters', list: ' items' };

/**
 * The price of a validated input in base units of an asset with these decimals.
 * @throws AmountError, RangeError for a rule that the asset cannot hold (a bug of the caller)
 */
export function priceOfInput(rule: InputRule, input: JsonObject, decimals: number): InputPrice {
  const value = valueAt(rule.pointer, input);
  const invalid = (message: string): InputPrice => ({ kind: 'invalid', pointer: rule.pointer, message });
  const price = (units: bigint): InputPrice => ({ kind: 'price', units });
  if (value === undefined) return invalid('is required: the price follows it');
  if (rule.kind === 'choice') {
    const chosen = typeof value === 'boolean' ? String(value) : value;
    return typeof chosen === 'string' && Object.hasOwn(rule.amounts, chosen)
      ? price(parseAmount(rule.amounts[chosen] ?? '', decimals))
      : invalid(`must be one of ${Object.keys(rule.amounts).join(', ')}: the price follows it`);
  }
  const measured = measure(value, rule.of);
  if (typeof measured === 'string') return invalid(measured);
  if (rule.kind === 'tier') {
    const step = rule.steps.find(({ upTo }) => measured <= upTo);
    return step === undefined
      ? invalid(`must be at most ${rule.steps.at(-1)?.upTo}${NOUNS[rule.of]}`)
      : price(parseAmount(step.amount, decimals));
  }
  const units = timesRoundedUp(parseAmount(rule.amount, decimals), measured);
  const [min, max] = [parseAmount(rule.min, decimals), parseAmount(rule.max, decimals)];
  return price(units < min ? min : units > max ? max : units);
}

/**
 * Reads the answer `{ "amount": "0.25" }` of the backend. An amount outside of the bounds or finer
 * than the asset is a fault: a price is never guessed and never rounded.
 */
export function quotedUnits({ min, max }: QuoteRule, answer: unknown, decimals: number): QuotedPrice {
  const fault = (message: string): QuotedPrice => ({ kind: 'fault', message });
  const amount =
    isObject(answer as Json) && Object.hasOwn(answer as object, 'amount')
      ? (answer as JsonObject)['amount']
      : undefined;
  if (typeof amount !== 'string')
    return fault('the quote is no object with a text amount, such as { "amount": "0.01" }');
  try {
    const units = parseAmount(amount, decimals);
    if (units < parseAmount(min, decimals)) return fault(`the quote is below pricing.by.quote.min, ${min}`);
    if (units > parseAmount(max, decimals)) return fault(`the quote is above pricing.by.quote.max, ${max}`);
    return { kind: 'price', units };
  } catch (error) {
    if (!(error instanceof AmountError)) throw error;
    return fault(`in the quote ${error.message}`);
  }
}

/** The lowest price of a rule, as configured. */
export function lowestOf(rule: PriceRule): string {
  return amountsOf(rule).reduce((least, amount) => (compareAmounts(amount, least) < 0 ? amount : least));
}

/** The highest price of a rule, as configured. */
export function highestOf(rule: PriceRule): string {
  return amountsOf(rule).reduce((most, amount) => (compareAmounts(amount, most) > 0 ? amount : most));
}

/** Less than, equal to or more than 0, as amounts of the grammar of `parseAmount` compare. */
export function compareAmounts(one: string, other: string): number {
  const difference = scaled(one) - scaled(other);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** The names along a JSON pointer (RFC 6901): `/a~1b` is `['a/b']`. */
export function pointerNames(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Prices between which the others of a rule are, in any order. */
function amountsOf(rule: PriceRule): readonly string[] {
  if (rule.kind === 'tier') return rule.steps.map(({ amount }) => amount);
  return rule.kind === 'choice' ? Object.values(rule.amounts) : [rule.min, rule.max];
}

/** A whole number that keeps the order of amounts. */
function scaled(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(MAX_AMOUNT_LENGTH, '0'));
}

/** Own members of objects alone are followed: no index of a list, nothing of a prototype. */
function valueAt(pointer: string, input: JsonObject): Json | undefined {
  let value: Json | undefined = input;
  for (const name of pointerNames(pointer))
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

/** The measure of a value, or its fault in words. */
function measure(value: Json, of: Measure): number | string {
  if (of === 'text')
    return typeof value === 'string' ? codePoints(value) : 'must be a text: the price follows its length';
  if (of === 'list') return Array.isArray(value) ? value.length : 'must be a list: the price follows its length';
  if (typeof value !== 'number') return 'must be a number: the price follows it';
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER
    ? value
    : `must be a number from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}: the price follows it`;
}

/** The length of a text as `maxLength` of JSON Schema counts it. */
function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Reads the number as its shortest decimal, which RFC 8785 writes too; 0 for one below zero. */
function timesRoundedUp(units: bigint, number: number): bigint {
  const [, sign, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(String(number)) ?? [];
  if (sign !== '') return 0n;
  const product = units * BigInt(whole + fraction);
  const shift = Number(exponent) - fraction.length;
  if (shift >= 0) return product * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (product + divisor - 1n) / divisor;
}
