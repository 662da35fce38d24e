/** JSON: the type of parsed input that is not validated further, and the canonical form. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

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
