/**
 * Exact sums of amounts in display units: prices have up to 36 decimals, a double only 15 digits.
 *
 * @typedef {{ readonly units: bigint, readonly scale: number }} Decimal `units` / 10^`scale`, never
 *   negative.
 */

const DECIMAL = /^\d{1,60}(?:\.\d{1,36})?$/;
/** Decimals that a price has at least when it is shown. */
const LEAST_DECIMALS = 2;

/** @type {Decimal} */
export const ZERO = { units: 0n, scale: 0 };

/**
 * Undefined for an invalid amount, which must not count as 0.
 *
 * @param {unknown} text
 * @returns {Decimal | undefined}
 */
export function decimal(text) {
  if (typeof text !== 'string' || !DECIMAL.test(text)) return undefined;
  const [whole = '', decimals = ''] = text.split('.');
  return { units: BigInt(whole + decimals), scale: decimals.length };
}

/**
 * @param {Decimal} one
 * @param {Decimal} other
 * @returns {Decimal}
 */
export function plus(one, other) {
  const scale = Math.max(one.scale, other.scale);
  return { units: unitsAt(one, scale) + unitsAt(other, scale), scale };
}

/**
 * The number of decimals that shows all of these amounts exactly, so that a column lines up.
 *
 * @param {readonly Decimal[]} amounts
 */
export function commonDecimals(amounts) {
  return Math.max(LEAST_DECIMALS, ...amounts.map(({ units, scale }) => significant(units, scale)));
}

/**
 * The exact amount, whole digits in groups of three, with at least `decimals` decimals.
 *
 * @param {Decimal} amount
 * @param {number} [decimals]
 */
export function inDigits(amount, decimals = LEAST_DECIMALS) {
  const shown = Math.max(decimals, significant(amount.units, amount.scale));
  const units = amount.scale > shown ? amount.units / 10n ** BigInt(amount.scale - shown) : unitsAt(amount, shown);
  const digits = units.toString().padStart(shown + 1, '0');
  const whole = digits.slice(0, digits.length - shown).replace(/\B(?=(?:\d{3})+$)/g, '\u202f');
  return shown === 0 ? whole : `${whole}.${digits.slice(-shown)}`;
}

/**
 * The exact amount as a program reads it: `1234.5`.
 *
 * @param {Decimal} amount
 */
export function digits(amount) {
  return inDigits(amount, 0).replaceAll('\u202f', '');
}

/**
 * The next round amount, which is not below it: 1, 2, 4, 6 or 8 and zeros.
 *
 * @param {Decimal} amount
 * @returns {Decimal}
 */
export function roundUp({ units, scale }) {
  const digit = 10n ** BigInt(units.toString().length - 1);
  const least = [1n, 2n, 4n, 6n, 8n, 10n].find((leading) => leading * digit >= units) ?? 10n;
  return { units: units === 0n ? 0n : least * digit, scale };
}

/**
 * A part of an amount in percent, for the length of a bar.
 *
 * @param {Decimal} part
 * @param {Decimal} amount
 */
export function percent(part, amount) {
  const scale = Math.max(part.scale, amount.scale);
  const all = unitsAt(amount, scale);
  return all === 0n ? 0 : Number((unitsAt(part, scale) * 10_000n) / all) / 100;
}

/**
 * @param {Decimal} one
 * @param {Decimal} other
 */
export function larger(one, other) {
  const scale = Math.max(one.scale, other.scale);
  return unitsAt(one, scale) < unitsAt(other, scale) ? other : one;
}

/**
 * @param {number} count
 * @returns {Decimal}
 */
export function whole(count) {
  return { units: BigInt(count), scale: 0 };
}

/**
 * @param {Decimal} amount
 * @param {number} scale
 */
function unitsAt({ units, scale: own }, scale) {
  return units * 10n ** BigInt(scale - own);
}

/**
 * The number of decimals without zeros at the end.
 *
 * @param {bigint} units
 * @param {number} scale
 */
function significant(units, scale) {
  let left = units;
  let decimals = scale;
  while (decimals > 0 && left % 10n === 0n) {
    left /= 10n;
    decimals -= 1;
  }
  return decimals;
}
