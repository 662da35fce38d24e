/** Finds an input of a resource that can be shown, and tried. */

import { isObject, type Json, type JsonObject } from '../json/types.ts';
import type { Resource } from './resource.ts';

/** The first valid input in the schema: an example, the default, or those of its properties. */
export function exampleInput(
  schema: JsonObject,
  compiled: Pick<Resource, 'prepare'> | undefined,
): JsonObject | undefined {
  const { required } = schema;
  const names = Array.isArray(required) ? (required as readonly string[]) : [];
  return (
    [...examplesIn(schema), fromProperties(schema)]
      .filter((candidate) => isObject(candidate))
      // Before the validator is asked, which may have to be compiled for it.
      .filter((candidate) => names.every((name) => Object.hasOwn(candidate, name)))
      .find((candidate) => compiled?.prepare(candidate, undefined).ok === true)
  );
}

function fromProperties({ properties }: JsonObject): JsonObject {
  const input: Record<string, Json> = {};
  for (const [name, schema] of Object.entries(isObject(properties) ? properties : {})) {
    const [first] = isObject(schema) ? examplesIn(schema) : [];
    if (first !== undefined) input[name] = first;
  }
  return input;
}

function examplesIn({ examples, default: usual }: JsonObject): readonly Json[] {
  return [...(Array.isArray(examples) ? (examples as readonly Json[]) : []), ...(usual === undefined ? [] : [usual])];
}
