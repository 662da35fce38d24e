/** Schemas of what is written as `name=value` pairs: an empty list or object has no pair at all. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
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
    ...(holds(type, 'object') && mayHaveMembers(inner) ? atLeastOne(inner, 'minProperties') : {}),
  };
}

function holds(type: Json | undefined, name: string): boolean {
  return [type].flat().includes(name);
}

/** An object that is always empty says all it has to by being there, which a pair cannot. */
function mayHaveMembers({ properties, additionalProperties = false }: JsonObject): boolean {
  return additionalProperties !== false || (isObject(properties) && Object.keys(properties).length > 0);
}

function atLeastOne(schema: JsonObject, keyword: 'minItems' | 'minProperties'): JsonObject {
  const least = schema[keyword];
  return { [keyword]: typeof least === 'number' && least > 1 ? least : 1 };
}
