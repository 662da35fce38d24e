import { isObject } from '../../../json/object.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import { Refused } from './reasons.ts';

/**
 * Reads members of a mandate whose signature is good. A signed member may still be of a wrong type: that is `claims_invalid`, and nothing
 * is converted (ap2 7.6).
 */

/** @throws Refused claims_invalid */
export function object(value: Json | undefined): JsonObject {
  if (!isObject(value)) throw new Refused('claims_invalid');
  return value;
}

/** @throws Refused claims_invalid */
export function list(value: Json | undefined): readonly Json[] {
  if (!Array.isArray(value)) throw new Refused('claims_invalid');
  return value as readonly Json[];
}

/** @throws Refused claims_invalid */
export function text(value: Json | undefined): string {
  if (typeof value !== 'string') throw new Refused('claims_invalid');
  return value;
}

/** A text that says something: identities may not be empty, because two empty ones are equal. @throws Refused claims_invalid */
export function identity(value: Json | undefined): string {
  const read = text(value);
  if (read === '') throw new Refused('claims_invalid');
  return read;
}

/** A whole number from `least` to 2^53 - 1. @throws Refused claims_invalid */
export function whole(value: Json | undefined, least: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) throw new Refused('claims_invalid');
  return value;
}

/** Reads a member that may be absent; `null` is not absent. */
export function optional<T>(value: Json | undefined, read: (value: Json) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}
