import type { Json, JsonObject } from './types.ts';

/** A JSON object, told from everything else that JSON can be. */
export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
