/** Schemas of what is written as `name=value` pairs: an empty list or object has no pair at all. */

import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import { withSubschemas } from '../../src/resources/schemas/keywords.ts';

/**
 * The schema without what would vanish on the way: empty lists and objects inside, and, where it is
 * required, the empty value itself.
 */
export function withoutEmpty(schema: JsonObject, required: boolean): JsonObject {
  const inner = withSubschemas(schema, ({ schema: part, applies, keyword }) => {
    if (!isObject(part) || applies === 'condition') return part;
    return withoutEmpty(part, applies === 'member' || required || keyword === 'items');
  });
  if (!required) return inner;
  const { type } = inner;
  return {
    ...inner,
    ...(holds(type, 'array') ? atLeastOne(inner, 'minItems') : {}),
    ...(holds(type, 'object') ? atLeastOne(inner, 'minProperties') : {}),
  };
}

function holds(type: Json | undefined, name: string): boolean {
  return [type].flat().includes(name);
}

function atLeastOne(schema: JsonObject, keyword: 'minItems' | 'minProperties'): JsonObject {
  const least = schema[keyword];
  return { [keyword]: typeof least === 'number' && least > 1 ? least : 1 };
}
