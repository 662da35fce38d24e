/**
 * Null in what travels as text: a query or a form has no null, so an optional member with null
 * means one that is not given, and what must be given cannot be null.
 */

import { isObject, type Json, type JsonObject } from '../json/types.ts';
import { carriesBody, FORM_TYPE } from './backend-request.ts';
import { queryProperties } from './reverse-template.ts';
import { withoutNull } from './schemas/without-null.ts';
import type { ResourceConfig } from './settings.ts';
import type { PathTemplate } from './url-template.ts';

interface Sendable {
  /** The input schema without the nulls that cannot be sent. */
  readonly schema: JsonObject;
  /** Optional members whose null means that they are not given. */
  readonly omitted: ReadonlySet<string>;
}

/** What an input schema says once the places of its members are known. */
export function sendable(schema: JsonObject, backend: ResourceConfig['backend'], template: PathTemplate): Sendable {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const changed = new Map<string, Json>();
  const omitted = new Set<string>();
  for (const name of sentAsText(backend, template, Object.keys(properties))) {
    const property = properties[name] ?? null;
    const plain = withoutNull(property);
    if (plain === property) continue;
    if (required.includes(name)) changed.set(name, plain);
    else omitted.add(name);
  }
  return {
    schema: changed.size === 0 ? schema : { ...schema, properties: { ...properties, ...Object.fromEntries(changed) } },
    omitted,
  };
}

/** The members in path, query and form that are no JSON text. */
function sentAsText(
  backend: ResourceConfig['backend'],
  template: PathTemplate,
  declared: readonly string[],
): readonly string[] {
  const { inputBindings, contentType, method } = backend;
  const inQuery = queryProperties(backend, template, declared);
  const { body = declared } = inputBindings ?? {};
  const fields = contentType === FORM_TYPE && carriesBody(method) && typeof body !== 'string' ? body : [];
  const inText = new Set([...template.parameters, ...inQuery, ...fields]);
  return declared.filter((name) => inText.has(name) && inputBindings?.styles.get(name) !== 'json');
}

/** The input without null in these members; the same object where there is none. */
export function withoutOmitted(input: JsonObject, omitted: ReadonlySet<string>): JsonObject {
  if (omitted.size === 0) return input;
  const given = Object.entries(input).filter(([name, value]) => value !== null || !omitted.has(name));
  return given.length === Object.keys(input).length ? input : Object.fromEntries(given);
}
