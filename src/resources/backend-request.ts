/** Builds the backend request of a valid input, before the call is priced. */

import type { BackendRequest } from '../backend/exchange.ts';
import type { InputProblem } from '../errors.ts';
import { isObject, type Json, type JsonObject } from '../json/types.ts';
import { instancePath } from './input-problems.ts';
import type { ResourceConfig } from './settings.ts';
import { encodePathValue, fillPath, type PathTemplate, templateParameters } from './url-template.ts';
import { type PairStyle, pairsOf } from './value-pairs.ts';

/** Longest path with query, bytes (it is ASCII): servers refuse more than 8 to 16 KiB. */
export const MAX_TARGET_LENGTH = 8_192;
const BODY_METHODS: ReadonlySet<BackendRequest['method']> = new Set(['POST', 'PUT', 'PATCH']);
/** Fields as in a query; every other media type of a request is JSON. */
export const FORM_TYPE = 'application/x-www-form-urlencoded';
/** Servers that decode a path before they route it read these as more than text. */
const SEPARATOR = /[/\\;?#%]/;
const encoder = new TextEncoder();

/** Whether the input of the method is sent in a body. */
export function carriesBody(method: BackendRequest['method']): boolean {
  return BODY_METHODS.has(method);
}

type BuiltRequest =
  | { readonly ok: true; readonly request: BackendRequest }
  | { readonly ok: false; readonly problem: InputProblem };

/**
 * The path parameters whose values may hold separators of a path: those whose schema lists its
 * values or has a pattern. Any other value could lead a server that decodes early to another path.
 */
export function separatedParameters({
  backend,
  inputSchema,
}: Pick<ResourceConfig, 'backend' | 'inputSchema'>): ReadonlySet<string> {
  const properties = isObject(inputSchema?.['properties']) ? inputSchema['properties'] : {};
  const rules = ['pattern', 'enum', 'const'];
  return new Set(
    templateParameters(backend.path).filter((name) => {
      const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return isObject(schema) && rules.some((rule) => Object.hasOwn(schema, rule));
    }),
  );
}

/**
 * `raw`: the caller's bytes when `input` is exactly their content, else undefined.
 * `separated`: the path parameters whose values may hold separators.
 */
export function buildRequest(
  backend: ResourceConfig['backend'],
  template: PathTemplate,
  input: JsonObject,
  raw: Uint8Array | undefined,
  separated: ReadonlySet<string>,
): BuiltRequest {
  const values: string[] = [];
  for (const name of template.parameters) {
    const given = Object.hasOwn(input, name) ? input[name] : undefined;
    const value = encodePathValue(given);
    if (value === undefined) return refuse(name, 'path', 'is not a legal path parameter');
    if (typeof given === 'string' && SEPARATOR.test(given) && !separated.has(name))
      return refuse(name, 'path', 'must have none of / \\ ; ? # %, which servers read as parts of a path');
    values.push(value);
  }
  const parts = inputParts(backend, template, input);
  const styles = backend.inputBindings?.styles;
  const query = [template.query];
  for (const [name, value] of Object.entries(parts.query)) {
    if (template.queryNames.has(name)) return refuse(name, 'query', 'is already part of the configured URL');
    const pairs = pairsOf(name, value, styles?.get(name));
    if (pairs === undefined) return refuse(name, 'query', `${noForm(styles?.get(name))}, to go into a query`);
    query.push(...pairs);
  }
  const path = fillPath(template, values, query.filter((pair) => pair !== '').join('&'));
  if (path === undefined)
    return { ok: false, problem: problem('$', 'path', 'does not lead to the configured operation') };
  if (path.length > MAX_TARGET_LENGTH) return { ok: false, problem: problem('$', 'path', 'is too long for a URL') };
  if (parts.body === undefined)
    return { ok: true, request: { method: backend.method, path, headers: backend.headers, body: undefined } };
  const headers = { ...backend.headers, 'content-type': backend.contentType };
  const request = { method: backend.method, path, headers };
  if (backend.contentType === FORM_TYPE) {
    if (!isObject(parts.body)) return { ok: false, problem: problem('$', 'body', 'must be an object, to be a form') };
    const fields: string[] = [];
    for (const [name, value] of Object.entries(parts.body)) {
      const pairs = pairsOf(name, value, styles?.get(name));
      if (pairs === undefined) return refuse(name, 'body', `${noForm(styles?.get(name))}, to go into a form`);
      fields.push(...pairs);
    }
    return { ok: true, request: { ...request, body: encoder.encode(fields.join('&')) } };
  }
  // The original bytes keep every digit that a double would lose (12345678901234567890, 1.0).
  const body =
    raw !== undefined && raw.length > 0 && parts.body === input ? raw : encoder.encode(JSON.stringify(parts.body));
  return { ok: true, request: { ...request, body } };
}

function noForm(style: PairStyle | undefined): string {
  switch (style) {
    case undefined:
      return 'must be a text, number or boolean, or a list of them';
    case 'deepObject':
      return 'must hold texts, numbers and booleans only';
    case 'json':
      return 'must be well-formed Unicode';
    default:
      return `must be a text, number or boolean, or a list of them without the separator (${style}) in an item`;
  }
}

/** Where the members of an input go that are not in the path. */
interface InputParts {
  readonly query: JsonObject;
  /** Undefined: no body is sent. The input object itself when the body is the whole input. */
  readonly body: Json | undefined;
}

export function inputParts(
  { method, inputBindings }: ResourceConfig['backend'],
  { parameters }: PathTemplate,
  input: JsonObject,
): InputParts {
  if (inputBindings !== undefined) {
    const { query, body } = inputBindings;
    return {
      query: pick(input, query),
      body: typeof body === 'string' ? own(input, body) : body.length === 0 ? undefined : pick(input, body),
    };
  }
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

function own(input: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(input, name) ? input[name] : undefined;
}

function refuse(name: string, keyword: string, message: string): BuiltRequest {
  return { ok: false, problem: problem(instancePath('$', name), keyword, message) };
}

function problem(path: string, keyword: string, message: string): InputProblem {
  return { path, message, keyword };
}
