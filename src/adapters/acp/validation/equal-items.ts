import { canonicalJson } from '../../../json/canonical.ts';
import type { Json } from '../../../json/types.ts';

/** Whether two items are equal as JSON, in one pass: comparing every pair takes seconds for what fits in one body. */
export function hasEqualItems(items: readonly Json[]): boolean {
  return new Set(items.map((item) => canonicalJson(item))).size < items.length;
}
