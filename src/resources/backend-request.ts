/** Builds the backend request of a valid input, before the call is priced. */

import type { BackendRequest } from '../backend/exchange.ts';
import type { InputProblem } from '../errors.ts';
import type { Json, JsonObject } from '../json/types.ts';
import { instancePath } from './input-problems.ts';
import type { ResourceConfig } from './settings.ts';
import { encodePathValue, encodeText, fillPath, type PathTemplate, scalarText } from './url-template.ts';

/** Longest path with query, bytes (it is ASCII): servers refuse more than 8 to 16 KiB. */
export const MAX_TARGET_LENGTH = 8_192;
const BODY_METHODS: ReadonlySet<BackendRequest['method']> = new Set(['POST', 'PUT', 'PATCH']);
const JSON_TYPE = 'application/json';
const encoder = new TextEncoder();

/** Whether the input of the method is sent in a JSON body. */
export function carriesBody(method: BackendRequest['method']): boolean {
  return BODY_METHODS.has(method);
}

type BuiltRequest =
  | { readonly ok: true; readonly request: BackendRequest }
  | { readonly ok: false; readonly problem: InputProblem };

/** `raw`: the caller's bytes when `input` is exactly their content, else undefined. */
export function buildRequest(
  backend: ResourceConfig['backend'],
  template: PathTemplate,
  input: JsonObject,
  raw: Uint8Array | undefined,
): BuiltRequest {
  const values: string[] = [];
  for (const name of template.parameters) {
    const value = Object.hasOwn(input, name) ? encodePathValue(input[name]) : undefined;
    if (value === undefined) return refuse(name, 'path', 'is not a legal path parameter');
    values.push(value);
  }
  const parts = inputParts(backend, template, input);
  const query = [template.query];
  for (const [name, value] of Object.entries(parts.query)) {
    if (template.queryNames.has(name)) return refuse(name, 'query', 'is already part of the configured URL');
    const pairs = queryPairs(name, value);
    if (pairs === undefined)
      return refuse(name, 'query', 'must be a text, number or boolean, or a list of them, to go into a query');
    query.push(...pairs);
  }
  const path = fillPath(template, values, query.filter((pair) => pair !== '').join('&'));
  if (path === undefined)
    return { ok: false, problem: problem('$', 'path', 'does not lead to the configured operation') };
  if (path.length > MAX_TARGET_LENGTH) return { ok: false, problem: problem('$', 'path', 'is too long for a URL') };
  if (parts.body === undefined)
    return { ok: true, request: { method: backend.method, path, headers: backend.headers, body: undefined } };
  // The original bytes keep every digit that a double would lose (12345678901234567890, 1.0).
  const body =
    raw !== undefined && raw.length > 0 && parts.body === input ? raw : encoder.encode(JSON.stringify(parts.body));
  const headers = { ...backend.headers, 'content-type': JSON_TYPE };
  return { ok: true, request: { method: backend.method, path, headers, body } };
}

/** Where the members of an input go that are not in the path. */
interface InputParts {
  readonly query: JsonObject;
  /** Undefined: no body is sent. The input object itself when the body is the whole input. */
  readonly body: JsonObject | undefined;
}

export function inputParts(
  { method, inputBindings }: ResourceConfig['backend'],
  { parameters }: PathTemplate,
  input: JsonObject,
): InputParts {
  if (inputBindings !== undefined)
    return {
      query: pick(input, inputBindings.query),
      body: inputBindings.body.length === 0 ? undefined : pick(input, inputBindings.body),
    };
  const rest =
    parameters.length === 0
      ? input
      : Object.fromEntries(Object.entries(input).filter(([name]) => !parameters.includes(name)));
  return carriesBody(method) ? { query: {}, body: rest } : { query: rest, body: undefined };
}

/** The members of an input that have one of these names. */
export function pick(input: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([name]) => names.includes(name)));
}

/** `name=value`, once for each item of a list; undefined when a value has no text form. */
function queryPairs(name: string, value: Json): readonly string[] | undefined {
  const key = encodeText(name);
  const items: readonly Json[] = Array.isArray(value) ? value : [value];
  const pairs: string[] = [];
  for (const item of items) {
    const text = scalarText(item);
    const encoded = text === undefined ? undefined : encodeText(text);
    if (key === undefined || encoded === undefined) return undefined;
    pairs.push(`${key}=${encoded}`);
  }
  return pairs;
}

function refuse(name: string, keyword: string, message: string): BuiltRequest {
  return { ok: false, problem: problem(instancePath('$', name), keyword, message) };
}

function problem(path: string, keyword: string, message: string): InputProblem {
  return { path, message, keyword };
}
