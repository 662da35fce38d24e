import type { Json, JsonObject } from '../json/types.ts';
import { IN_PLACE } from './keywords.ts';
import { isObject, resolveReference, subschemas, withSubschemas } from './subschemas.ts';

/** Longest string that a pattern or a format is tried on, characters. */
export const MAX_MATCHED_LENGTH = 4_096;

/** What a resource without `inputSchema` accepts, and publishes. */
export const EMPTY_INPUT: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/**
 * The form of a checked input schema that is enforced and published: objects are closed at every level unless the operator wrote
 * `additionalProperties` or `unevaluatedProperties`, and strings under a pattern have a length. Where several schemas speak
 * about one object (allOf, $ref, …), only `unevaluatedProperties` on the outside can close it without contradiction.
 */
export function closeSchema(root: JsonObject): JsonObject {
  const closed = closeValue(root, root);
  return isObject(closed) ? closed : root;
}

function closeValue(schema: Json, root: JsonObject): Json {
  if (!isObject(schema)) return schema;
  const inner = closeParts(schema, root);
  if (!isObject(inner) || !describesObject(schema, root)) return inner;
  if ('additionalProperties' in schema || 'unevaluatedProperties' in schema) return inner;
  const composed = IN_PLACE.some((keyword) => keyword in schema);
  return { ...inner, [composed ? 'unevaluatedProperties' : 'additionalProperties']: false };
}

function closeParts(schema: Json, root: JsonObject): Json {
  if (!isObject(schema)) return schema;
  const closed = withSubschemas(schema, ({ place, schema: part }) => {
    if (place === 'condition') return part;
    return place === 'member' ? closeValue(part, root) : closeParts(part, root);
  });
  if (typeof closed['pattern'] !== 'string') return closed;
  const { maxLength } = closed;
  const bounded = typeof maxLength === 'number' && maxLength <= MAX_MATCHED_LENGTH;
  return bounded ? closed : { ...closed, maxLength: MAX_MATCHED_LENGTH };
}

/** Does this schema, or one that applies to the same value, speak about objects? Recursion ends: references are acyclic. */
function describesObject(schema: Json | undefined, root: JsonObject): boolean {
  if (!isObject(schema)) return false;
  const { type } = schema;
  if (type === 'object' || (Array.isArray(type) && type.includes('object'))) return true;
  if ('properties' in schema || 'patternProperties' in schema) return true;
  if ('$ref' in schema && describesObject(resolveReference(root, schema['$ref'] ?? null), root)) return true;
  return subschemas(schema).some(({ place, schema: part }) => place === 'same' && describesObject(part, root));
}
