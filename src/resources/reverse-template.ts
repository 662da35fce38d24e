/**
 * Reads the input of a resource back from a request at the merchant's own address: the reverse of
 * backend-request.ts. An input that is read here builds the same path and query there, so a buyer
 * gets the answer for the address; the validation of the configuration refuses a template for which
 * that cannot hold.
 */

import type { InputProblem } from '../errors.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { carriesBody, instancePath, queryProperties, withoutNull } from './backend-request.ts';
import type { ResourceConfig } from './settings.ts';
import { comparisonFault, type PathTemplate, readTemplate } from './url-template.ts';

/** The input as it was read, not yet validated by the schema of the resource. */
export type ReadInput =
  | { readonly ok: true; readonly input: JsonObject }
  | { readonly ok: false; readonly problem: InputProblem }
  /** The address is spelled in another way than the template has it. */
  | { readonly ok: false; readonly problem: undefined };

/** The parts of a request that hold an input. */
export interface AddressedRequest {
  /** As it came, without the query. */
  readonly path: string;
  /** As it came, without the `?`. */
  readonly query: string;
  /** The JSON object of the body; undefined without a body. */
  readonly body: JsonObject | undefined;
}

/** Reads requests at the address of one resource. */
export interface AddressReader {
  /** The names in its path, in their order. */
  readonly parameters: readonly string[];
  /** Whether a path is spelled as the template has it; its values may still be illegal. */
  matches(path: string): boolean;
  read(request: AddressedRequest): ReadInput;
}

/** The reverse of one resource's template, or why there is none. */
type Reversal =
  | { readonly ok: true; readonly address: AddressReader }
  | { readonly ok: false; readonly message: string };

/** Characters that no encoded value holds: one of them can separate two parameters. */
const SEPARATORS = /[,:@&=+$]/;
/** JSON's grammar of a number. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const JSON_TYPE = 'application/json';
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
/** Characters that servers read differently once they are decoded. */
const UNSAFE_IN_PATH = /[/\\.%;?#\p{Cc}]/u;

type Scalar = 'string' | 'number' | 'integer' | 'boolean';
/** How the text of one property becomes its value. */
interface TextForm {
  readonly type: Scalar;
  readonly list: boolean;
}

/** Compiles the reverse of a resource's template. */
export function reverseTemplate({ backend, inputSchema }: Pick<ResourceConfig, 'backend' | 'inputSchema'>): Reversal {
  const reading = readTemplate(backend.path);
  if (!reading.ok) return reading;
  const { template } = reading;
  const refuse = (message: string): Reversal => ({ ok: false, message });
  const { inputBindings, contentType } = backend;
  if (typeof inputBindings?.body === 'string' || (inputBindings?.styles.size ?? 0) > 0 || contentType !== JSON_TYPE)
    return refuse('is sent as inputBindings.body, inputBindings.styles or contentType say, which is not read back');
  const fault = comparisonFault(backend.path);
  if (fault !== undefined) return refuse(fault);
  const pattern = pathPattern(template);
  if (pattern === undefined)
    return refuse('has two parameters in one segment without one of , : @ & = + $ between them');
  const properties = isObject(inputSchema?.['properties']) ? inputSchema['properties'] : {};
  const forms = new Map<string, TextForm>();
  const inQuery = queryProperties(backend, template, Object.keys(properties));
  for (const name of [...template.parameters, ...inQuery]) {
    const form = textForm(properties[name]);
    if (form === undefined)
      return refuse(`needs a type with one text form for ${name}: string, integer, number, boolean or a list of one`);
    if (form.list && template.parameters.includes(name)) return refuse(`has {${name}}, whose type is a list`);
    if (/[[\]]/.test(name)) return refuse(`cannot have ${name} in the query: servers read brackets differently`);
    if (template.queryNames.has(name)) return refuse(`has ${name} in its fixed query`);
    forms.set(name, form);
  }
  const fixed = [...new URLSearchParams(template.query)];
  const address: AddressReader = {
    parameters: template.parameters,
    matches: (path) => pattern.test(path),
    read({ path, query, body }) {
      const values = pattern.exec(path);
      if (values === null) return { ok: false, problem: undefined };
      const input: Record<string, Json> = Object.create(null);
      for (const [index, name] of template.parameters.entries()) {
        const form = forms.get(name);
        const text = pathText(values[index + 1] ?? '');
        if (text === '') return refused(name, 'path', 'must not be empty');
        // A listed address whose `{param}` was not replaced.
        if (text === undefined || text === `{${name}}`) return refused(name, 'path', 'is not a legal path parameter');
        const value = readValue(text, form);
        if (value === undefined) return refused(name, 'type', `must be ${article(form?.type ?? 'string')}`);
        input[name] = value;
      }
      const pairs = queryPairs(query);
      if (pairs === undefined) return refused('', 'query', 'is not percent-encoded UTF-8 without control characters');
      const problem = readQuery(pairs, { fixed, forms, inQuery, strict: backend.strictQuery }, input);
      if (problem !== undefined) return { ok: false, problem };
      if (body !== undefined && !carriesBody(backend.method)) return refused('', 'body', 'is not taken by this method');
      for (const [name, value] of Object.entries(body ?? {})) {
        if (forms.has(name))
          return refused(name, 'body', `belongs into the ${template.parameters.includes(name) ? 'path' : 'query'}`);
        input[name] = value;
      }
      return { ok: true, input: { ...input } };
    },
  };
  return { ok: true, address };
}

/** Undefined when two parameters cannot be told apart. */
function pathPattern({ literals, parameters }: PathTemplate): RegExp | undefined {
  let source = RegExp.escape(literals[0] ?? '');
  for (const [index] of parameters.entries()) {
    const literal = literals[index + 1] ?? '';
    const separator = SEPARATORS.exec(literal)?.[0];
    const sharesSegment = index + 1 < parameters.length && !literal.includes('/');
    if (sharesSegment && separator === undefined) return undefined;
    source += sharesSegment ? `([^/${separator}]*)` : '([^/]*)';
    source += RegExp.escape(literal);
  }
  return new RegExp(`^${source}$`, 's');
}

interface QueryRules {
  readonly fixed: readonly (readonly [string, string])[];
  readonly forms: ReadonlyMap<string, TextForm>;
  readonly inQuery: readonly string[];
  readonly strict: boolean;
}

/** Reads the query into the input; returns the problem that prevents that, or undefined. */
function readQuery(
  pairs: readonly (readonly [string, string])[],
  { fixed, forms, inQuery, strict }: QueryRules,
  input: Record<string, Json>,
): InputProblem | undefined {
  const byName = Map.groupBy(pairs, ([name]) => name);
  for (const [name, given] of byName) {
    const texts = given.map(([, text]) => text);
    const expected = fixed.filter(([fixedName]) => fixedName === name).map(([, text]) => text);
    if (expected.length > 0) {
      if (texts.join('\n') !== expected.join('\n'))
        return problem(name, 'query', `must be ${expected.join(', ')} or absent`);
      continue;
    }
    const form = inQuery.includes(name) ? forms.get(name) : undefined;
    if (form === undefined) {
      if (name === '__proto__' || strict)
        return problem(name, 'additionalProperties', 'is not an input of this resource');
      continue;
    }
    const values = texts.map((text) => readValue(text, form));
    if (values.includes(undefined)) return problem(name, 'type', `must be ${article(form.type)}`);
    if (!form.list && values.length > 1) return problem(name, 'query', 'must not be repeated');
    input[name] = form.list ? (values as readonly Json[]) : (values[0] as Json);
  }
  return undefined;
}

/** Name and text of each pair; undefined when one is no encoded UTF-8 or has control characters. */
function queryPairs(query: string): readonly (readonly [string, string])[] | undefined {
  const pairs: (readonly [string, string])[] = [];
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const at = pair.indexOf('=');
    const name = queryText(at < 0 ? pair : pair.slice(0, at));
    const text = queryText(at < 0 ? '' : pair.slice(at + 1));
    if (name === undefined || text === undefined) return undefined;
    pairs.push([name, text]);
  }
  return pairs;
}

function queryText(text: string): string | undefined {
  const decoded = decodeStrictly(text.replaceAll('+', ' '));
  return decoded === undefined || /\p{Cc}/u.test(decoded) ? undefined : decoded;
}

/** A path value, which may be empty; undefined when it could be read as another path. */
function pathText(text: string): string | undefined {
  const decoded = decodeStrictly(text);
  if (decoded === undefined || decoded === '.' || decoded === '..') return undefined;
  const escaped = text.match(/(?:%[0-9a-f]{2})+/gi) ?? [];
  return escaped.some((escapes) => UNSAFE_IN_PATH.test(decodeStrictly(escapes) ?? '\0')) ? undefined : decoded;
}

function decodeStrictly(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The value that a text stands for; undefined when the text has no value of the type. */
function readValue(text: string, form: TextForm | undefined): Json | undefined {
  switch (form?.type) {
    case 'string':
      return text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'integer':
      return INTEGER.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
    case 'number': {
      const value = Number(text);
      return NUMBER.test(text) && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : undefined;
    }
    case undefined:
      return undefined;
  }
}

/** The one way in which a text becomes a value of this schema; undefined when there are several. */
function textForm(declared: Json | undefined): TextForm | undefined {
  const schema = withoutNull(declared ?? null);
  if (!isObject(schema)) return undefined;
  const type = scalarType(schema);
  if (type !== undefined) return { type, list: false };
  if (schema['type'] !== 'array' || !isObject(schema['items'])) return undefined;
  const item = scalarType(schema['items']);
  return item === undefined ? undefined : { type: item, list: true };
}

function scalarType(schema: JsonObject): Scalar | undefined {
  const { type, enum: values, const: value } = schema;
  const named = type ?? typeOfAll(Array.isArray(values) ? values : value === undefined ? [] : [value]);
  return named === 'string' || named === 'number' || named === 'integer' || named === 'boolean' ? named : undefined;
}

function typeOfAll(values: readonly Json[]): string | undefined {
  const types = new Set(values.map((value) => typeof value));
  return types.size === 1 ? [...types][0] : undefined;
}

function article(type: Scalar): string {
  return type === 'integer' ? 'an integer' : `a ${type}`;
}

function refused(name: string, keyword: string, message: string): ReadInput {
  return { ok: false, problem: problem(name, keyword, message) };
}

function problem(name: string, keyword: string, message: string): InputProblem {
  return { path: name === '' ? '$' : instancePath('$', name), message, keyword };
}
