/**
 * Turns an input into the backend request, before the call is priced: strips reserved members,
 * validates, reports the problems, and puts each member into path, query or body.
 */

import type { ErrorObject } from 'ajv/dist/2020.js';
import type { BackendRequest } from '../backend/backend-exchange.ts';
import type { InputProblem } from '../errors.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { pointerNames } from '../payments/pricing/by-input.ts';
import { MatchBudgetError, withMatchBudget } from './patterns/linear.ts';
import type { Resource } from './resource.ts';
import type { Validators } from './schemas/ajv.ts';
import { MAX_MATCHED_LENGTH } from './schemas/closed-objects.ts';
import { RESERVED_NAMES } from './schemas/keywords.ts';
import { MatchLengthError } from './schemas/matching.ts';
import type { ResourceConfig } from './settings.ts';
import {
  encodePathValue,
  fillPath,
  type PairStyle,
  type PathTemplate,
  pairsOf,
  templateParameters,
} from './url-template.ts';

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

/** The properties that travel in the query. */
export function queryProperties(
  { method, inputBindings }: ResourceConfig['backend'],
  { parameters }: PathTemplate,
  declared: readonly string[],
): readonly string[] {
  if (inputBindings !== undefined) return inputBindings.query;
  return carriesBody(method) ? [] : declared.filter((name) => !parameters.includes(name));
}

/** The members of an input that are not in the path, by destination. */
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

/** JSON values in an input above which only its first problem is reported, which is cheap. */
const MAX_REPORTED_VALUES = 1_000;

interface Sending {
  readonly template: PathTemplate;
  /** Path parameters whose values may hold separators. */
  readonly separated: ReadonlySet<string>;
  /** Members whose null means that they are not given. */
  readonly omitted: ReadonlySet<string>;
}

export function prepareInput(
  validators: Validators,
  backend: ResourceConfig['backend'],
  { template, separated, omitted }: Sending,
): Resource['prepare'] {
  return (received, raw) => {
    const input = withoutReserved(received);
    const problems = problemsOf(validators, input);
    if (problems.length > 0) return { ok: false, problems };
    // The bought input keeps its nulls: the buyer sends the same input again to collect.
    const sent = withoutOmitted(input, omitted);
    const built = buildRequest(backend, template, sent, sent === received ? raw : undefined, separated);
    return built.ok ? { ok: true, request: built.request, input } : { ok: false, problems: [built.problem] };
  };
}

/** An input as it is bought. The same object when there is nothing to strip. */
export function withoutReserved(input: JsonObject): JsonObject {
  const entries = Object.entries(input).filter(([name]) => !RESERVED_NAMES.has(name));
  return entries.length === Object.keys(input).length ? input : Object.fromEntries(entries);
}

function problemsOf(validators: Validators, input: JsonObject): readonly InputProblem[] {
  try {
    return withMatchBudget(() => findProblems(validators, input));
  } catch (error) {
    const message = reasonUntried(error);
    if (message === undefined) throw error;
    return [{ path: '$', message, keyword: 'maxLength' }];
  }
}

function findProblems({ first, all }: Validators, input: JsonObject): readonly InputProblem[] {
  const stopping = first();
  if (stopping(input)) return [];
  if (isLarge(input)) return inputProblems(stopping.errors ?? [], input);
  try {
    const reporting = all();
    reporting(input);
    return inputProblems(reporting.errors ?? [], input);
  } catch (error) {
    // The full report costs more than the verdict, and may exceed the budget.
    if (reasonUntried(error) === undefined) throw error;
    return inputProblems(stopping.errors ?? [], input);
  }
}

/** Why a pattern or format was not tried; undefined for any other error. */
function reasonUntried(error: unknown): string | undefined {
  if (error instanceof MatchLengthError)
    return `has a text of more than ${MAX_MATCHED_LENGTH} characters where a pattern or format applies`;
  if (error instanceof MatchBudgetError)
    return 'has more text under patterns and formats than one input may have: send shorter or fewer texts';
  return undefined;
}

function isLarge(input: JsonObject): boolean {
  const waiting: Json[] = [input];
  for (let seen = 0; seen < MAX_REPORTED_VALUES; seen += 1) {
    const value = waiting.pop();
    if (value === undefined) return false;
    if (value !== null && typeof value === 'object') {
      const inner: readonly Json[] = Array.isArray(value) ? value : Object.values(value);
      if (inner.length > MAX_REPORTED_VALUES) return true;
      waiting.push(...inner);
    }
  }
  return true;
}

/** Most problems that one answer lists (contract 1.1). */
const MAX_INPUT_PROBLEMS = 20;
/** Longest message, characters; it may list values of the schema. */
const MAX_MESSAGE_LENGTH = 200;
/** Longest name of a member in a path, characters. */
const MAX_NAME_LENGTH = 64;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** The validator's errors in the contract's form: fixed phrases and parts of the schema. */
function inputProblems(errors: readonly ErrorObject[], input: Json): readonly InputProblem[] {
  const problems = new Map<string, InputProblem>();
  for (const error of errors) {
    // These errors follow from another one, which is more specific.
    if (error.keyword === 'if' || (error.propertyName !== undefined && error.keyword !== 'propertyNames')) continue;
    const problem = explain(error, pathOf(error.instancePath, input));
    problems.set(`${problem.path} ${problem.keyword}`, problem);
    if (problems.size === MAX_INPUT_PROBLEMS) break;
  }
  return [...problems.values()];
}

function explain({ keyword, params, message }: ErrorObject, path: string): InputProblem {
  const at = (member: unknown, text: string): InputProblem => ({
    path: instancePath(path, String(member)),
    message: text,
    keyword,
  });
  switch (keyword) {
    case 'required':
      return at(params['missingProperty'], 'is required');
    case 'additionalProperties':
      return at(params['additionalProperty'], 'is not a property of this input');
    case 'unevaluatedProperties':
      return at(params['unevaluatedProperty'], 'is not a property of this input');
    case 'propertyNames':
      return at(params['propertyName'], 'is not a legal property name here');
    case 'enum':
      return { path, keyword, message: bounded(`must be one of ${allowed(params['allowedValues'])}`) };
    default:
      return { path, keyword, message: bounded(message ?? 'is not valid') };
  }
}

function allowed(values: unknown): string {
  return Array.isArray(values)
    ? values.map((value: unknown) => JSON.stringify(value)).join(', ')
    : 'the published values';
}

function bounded(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}

/** A JSON pointer in the contract's form; the input tells its indexes from names. */
export function pathOf(pointer: string, input: Json): string {
  let path = '$';
  let value: Json | undefined = input;
  for (const name of pointerNames(pointer)) {
    if (Array.isArray(value)) {
      path = instancePath(path, Number(name));
      value = (value as readonly Json[])[Number(name)];
    } else {
      path = instancePath(path, name);
      value =
        value !== null && typeof value === 'object' ? (value as { readonly [key: string]: Json })[name] : undefined;
    }
  }
  return path;
}

/**
 * The path of a member, such as `$.a.b[0]`. Names that are not plain are quoted and long names are
 * cut, so that a path fits on one line.
 */
export function instancePath(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  const name = member.slice(0, MAX_NAME_LENGTH).toWellFormed();
  return PLAIN_NAME.test(name) ? `${parent}.${name}` : `${parent}[${JSON.stringify(name)}]`;
}

interface Sendable {
  /** The input schema without the nulls that cannot be sent. */
  readonly schema: JsonObject;
  /** Optional members whose null means that they are not given. */
  readonly omitted: ReadonlySet<string>;
}

/** Adapts an input schema to the destinations of its members: only JSON text has a null. */
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
function withoutOmitted(input: JsonObject, omitted: ReadonlySet<string>): JsonObject {
  if (omitted.size === 0) return input;
  const given = Object.entries(input).filter(([name, value]) => value !== null || !omitted.has(name));
  return given.length === Object.keys(input).length ? input : Object.fromEntries(given);
}

/** The schema without the null that it names; itself where it names none, or nothing else. */
export function withoutNull(schema: Json): Json {
  if (!isObject(schema)) return schema;
  const { type, enum: values, default: usual, ...others } = schema;
  const rest: JsonObject = { ...others, ...(usual === undefined || usual === null ? {} : { default: usual }) };
  const types = Array.isArray(type) ? type.filter((name: Json) => name !== 'null') : undefined;
  if (types !== undefined && types.length > 0 && types.length < [type].flat().length) {
    const kept = Array.isArray(values) ? { enum: values.filter((value: Json) => value !== null) } : {};
    return { type: types.length === 1 ? (types[0] ?? '') : types, ...rest, ...kept };
  }
  if (type === undefined && Array.isArray(values) && values.includes(null) && values.length > 1)
    return { ...rest, enum: values.filter((value: Json) => value !== null) };
  for (const keyword of ['anyOf', 'oneOf']) {
    const branches = schema[keyword];
    if (!Array.isArray(branches)) continue;
    const kept = (branches as readonly Json[]).filter((branch) => !isNull(branch)).map(withoutNull);
    const isSame = kept.length === branches.length && kept.every((branch, index) => branch === branches[index]);
    if (isSame || kept.length === 0) continue;
    const { [keyword]: _branches, ...beside } = rest;
    const [only] = kept;
    if (kept.length > 1 || !isObject(only) || type !== undefined) return { ...schema, [keyword]: kept };
    return Object.keys(only).some(
      (name) => name in beside && !['title', 'description', 'default', 'examples'].includes(name),
    )
      ? { ...schema, [keyword]: kept }
      : { ...only, ...beside };
  }
  return schema;
}

function isNull(schema: Json): boolean {
  if (!isObject(schema)) return false;
  const { type, const: value, enum: values } = schema;
  return (
    [type].flat().every((name) => name === 'null') ||
    value === null ||
    (Array.isArray(values) && values.every((one) => one === null))
  );
}
