/**
 * The check behind `uniqueItems`. It is a module of its own because the validators that the bundle
 * holds as code import it by this path (engine.ts), without the compiler of the schemas.
 */

import type { Json } from '../../../json/json.ts';
import { canonicalJson } from '../../../json/json.ts';

/**
 * Whether two items are equal as JSON, in one pass: to compare every pair of one body takes
 * seconds.
 */
export function hasEqualItems(items: readonly Json[]): boolean {
  return new Set(items.map((item) => canonicalJson(item))).size < items.length;
}
