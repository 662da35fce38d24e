/** Turns a checked schema into the form that is enforced and published: its objects are closed. */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { compilePattern } from '../patterns/linear.ts';
import { sameValue, withSubschemas } from './keywords.ts';

/** Longest text that a pattern or a format is tried on, characters. */
export const MAX_MATCHED_LENGTH = 4_096;

/** The schema of a resource without `inputSchema`. */
export const EMPTY_INPUT: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/**
 * Objects are closed at every level unless the operator wrote `additionalProperties` or
 * `unevaluatedProperties`, and strings under a pattern get a greatest length. Where several schemas
 * describe one object (allOf, $ref, if, …), each of them stays open, and the outer one names the
 * properties of all. The outer one is closed with `additionalProperties`: the validator gets
 * `unevaluatedProperties` wrong beside conditions.
 */
export function closeSchema(root: JsonObject): JsonObject {
  const closed = closeValue(root, root);
  return isObject(closed) ? closed : root;
}

function closeValue(schema: Json, root: JsonObject): Json {
  if (!isObject(schema)) return schema;
  const inner = closeParts(schema, root);
  const parts = sameValue(schema, root);
  if (!isObject(inner) || !parts.some(describesObject) || parts.some(isOpenedOnPurpose)) return inner;
  if ('additionalProperties' in schema || 'unevaluatedProperties' in schema) return inner;
  return {
    ...inner,
    ...declared('properties', inner, parts),
    ...declared('patternProperties', inner, parts),
    additionalProperties: false,
  };
}

function closeParts(schema: Json, root: JsonObject): Json {
  if (!isObject(schema)) return schema;
  const closed = withSubschemas(schema, ({ applies, schema: part }) => {
    if (applies === 'condition') return part;
    return applies === 'member' ? closeValue(part, root) : closeParts(part, root);
  });
  const { pattern, maxLength } = closed;
  if (typeof pattern !== 'string') return closed;
  const longest = Math.min(MAX_MATCHED_LENGTH, compilePattern(pattern).longest);
  return typeof maxLength === 'number' && maxLength <= longest ? closed : { ...closed, maxLength: longest };
}

function describesObject(schema: JsonObject): boolean {
  const { type } = schema;
  if (type === 'object' || (Array.isArray(type) && type.includes('object'))) return true;
  return 'properties' in schema || 'patternProperties' in schema;
}

function isOpenedOnPurpose({ additionalProperties = false, unevaluatedProperties = false }: JsonObject): boolean {
  return additionalProperties !== false || unevaluatedProperties !== false;
}

/** The names of the outer schema, and those that only its parts declare, each with `true`. */
function declared(
  keyword: 'properties' | 'patternProperties',
  own: JsonObject,
  parts: readonly JsonObject[],
): JsonObject {
  const names = new Map<string, Json>();
  for (const part of parts)
    if (isObject(part[keyword])) for (const name of Object.keys(part[keyword])) names.set(name, true);
  if (names.size === 0) return {};
  return {
    [keyword]: { ...(isObject(own[keyword]) ? own[keyword] : {}), ...Object.fromEntries(missing(names, own[keyword])) },
  };
}

function missing(names: ReadonlyMap<string, Json>, own: Json | undefined): readonly (readonly [string, Json])[] {
  return [...names].filter(([name]) => !isObject(own) || !Object.hasOwn(own, name));
}
