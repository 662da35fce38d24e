/** Amounts of AP2 (ap2 7.3): minor units are whole numbers that a double holds exactly, everything else is decimal text. */

/** The most minor units that JSON can say exactly. */
const MAX_MINOR_UNITS = Number.MAX_SAFE_INTEGER;

/** No sign, no exponent, no leading zero. */
const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/**
 * Major units as decimal text to minor units: `("0.01", 6)` is `10000`. Undefined for what is no such text, has more digits than the
 * currency, or is more than 2^53 - 1: nothing is rounded.
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
 * `budget.max` to minor units. It is a JSON number of major units, so its shortest decimal text is what was meant: `0.29 * 100` is not
 * 29 in binary fractions. Undefined where that text has an exponent or too many digits.
 */
export function minorUnitsOfNumber(major: number, exponent: number): number | undefined {
  return minorUnits(String(major), exponent);
}
