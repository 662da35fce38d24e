/** Bounds and forbidden names of strict JSON. */

/** Deepest nesting of arrays and objects that is read. */
export const MAX_JSON_DEPTH = 64;
/** Most object members in one document. */
export const MAX_JSON_MEMBERS = 10_000;
/** Names that change a prototype when a document is copied carelessly. */
export const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const INTEGER = /^-?\d+$/;

/** Whether a number of JSON is in range: an integer exact in a double, or a finite number. */
export function isInRange(token: string): boolean {
  const value = Number(token);
  return INTEGER.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value);
}
