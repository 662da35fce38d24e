/** The canonical form of JSON, from which digests and comparisons are made. */

import type { Json } from './types.ts';

/**
 * RFC 8785 (JCS): one spelling for equal JSON values, so that a digest depends on the value alone.
 * Numbers are printed as by ECMAScript, names sorted in UTF-16 order. The strict parser bounds the
 * depth of its values, so recursion is safe.
 */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  const object = value as { readonly [name: string]: Json };
  let members = '';
  // Sorted in UTF-16 order, as `sort` does by itself.
  for (const name of Object.keys(object).sort())
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(object[name] ?? null)}`;
  return `{${members}}`;
}
