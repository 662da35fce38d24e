/** The parameters of an operation: what goes into path and query, and what a caller cannot send. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { type PairStyle, templateParameters } from '../../src/resources/url-template.ts';
import { isJson } from './media-types.ts';
import { listed, type Operation } from './operations.ts';
import { templateOf } from './paths.ts';
import { type Documents, Inexpressible, resolved } from './references.ts';
import { type LeftOut, nameFault, type SchemaReader } from './schemas.ts';
import { LONGEST_NOTE, plainText } from './texts.ts';
import { withoutEmpty } from './written-pairs.ts';

export interface InputParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly schema: JsonObject;
  readonly required: boolean;
  readonly style: PairStyle | undefined;
}

export interface Parameters {
  /** The path as a template. */
  readonly path: string;
  readonly inputs: readonly InputParameter[];
  /** Headers of which the document allows one value only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly leftOut: readonly LeftOut[];
}

/** OpenAPI says that parameters of these names count for nothing. */
const IGNORED_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type']);
/** Sent with each call of a resource. */
const SENT_HEADERS: ReadonlySet<string> = new Set(['accept-encoding', 'content-length', 'host', 'x-request-id']);
/** Sent with some calls, so that no input need have them. */
const OFTEN_SENT: ReadonlySet<string> = new Set(['idempotency-key', 'traceparent', 'tracestate']);

/** What reaches the backend without being an input. */
export interface Sending {
  /** Whether a required `Authorization` does not keep the operation out. */
  readonly ignoreSecurity: boolean;
  /** Headers of the configuration, lower-case names. */
  readonly headers: ReadonlySet<string>;
  /** A priced call has an idempotency key. */
  readonly isPriced: boolean;
}

/** @throws Inexpressible when something required cannot be sent */
export function parametersOf(
  documents: Documents,
  operation: Operation,
  reader: SchemaReader,
  sending: Sending,
): Parameters {
  const byPlace = new Map<string, { readonly file: string; readonly value: JsonObject }>();
  for (const place of operation.parameters) {
    const parameter = resolved(documents, place, 'a parameter');
    const { name, in: where } = parameter.value;
    // Names of headers have no case; frameworks write that of code beside that of a decorator.
    byPlace.set(`${String(where)} ${where === 'header' ? String(name).toLowerCase() : String(name)}`, parameter);
  }
  const declared = [...byPlace.values()]
    .filter(({ value }) => value['in'] === 'path')
    .map(({ value }) => value['name']);
  const path = templateOf(
    operation.path,
    declared.filter((name) => typeof name === 'string'),
  );
  const inPath = templateParameters(path);
  const inputs: InputParameter[] = [];
  const headers: [string, string][] = [];
  const leftOut: LeftOut[] = [];
  for (const { file, value } of byPlace.values()) {
    const { name, in: where } = value;
    if (typeof name !== 'string') throw new Inexpressible('has a parameter without a name: each needs name and in');
    const required = value['required'] === true || where === 'path';
    try {
      if (where === 'header') headers.push(...headerOf(name, required, value, sending));
      else if (where === 'query' || where === 'path') {
        if (where === 'query' && inPath.includes(name))
          throw new Inexpressible('has the name of a path parameter: rename one');
        const { parameter, leftOut: within } = inputOf(name, where, { file, value }, reader);
        inputs.push(parameter);
        leftOut.push(...within);
      } else throw new Inexpressible(`goes into the ${String(where)}: declare it in: query`);
    } catch (error) {
      if (!(error instanceof Inexpressible)) throw error;
      if (required) throw new Inexpressible(`needs the ${String(where)} parameter ${name}, which ${error.message}`);
      leftOut.push({ path: name, reason: error.message });
    }
  }
  for (const name of inPath)
    if (!byPlace.has(`path ${name}`))
      inputs.push({ name, in: 'path', schema: { type: 'string' }, required: true, style: undefined });
  return { path, inputs, headers: Object.fromEntries(headers), leftOut };
}

/** A header whose one value is known is sent always; no caller sends any other. */
function headerOf(
  name: string,
  required: boolean,
  { schema }: JsonObject,
  { ignoreSecurity, headers, isPriced }: Sending,
): readonly [string, string][] {
  const header = name.toLowerCase();
  if (IGNORED_HEADERS.has(header) || headers.has(header)) return [];
  if (header === 'authorization' && (ignoreSecurity || !required)) return [];
  if (header === 'authorization')
    throw new Inexpressible(
      'holds credentials of the caller: put Authorization under backend.headers of the configuration',
    );
  const { enum: values, const: only } = isObject(schema) ? schema : {};
  const value = only ?? (Array.isArray(values) && values.length === 1 ? values[0] : undefined);
  if (required && typeof value === 'string' && /^[\x20-\x7e]{1,4096}$/.test(value) && /^[A-Za-z0-9-]{1,64}$/.test(name))
    return [[name, value]];
  if (value === undefined && (SENT_HEADERS.has(header) || (OFTEN_SENT.has(header) && !required))) return [];
  if (header === 'idempotency-key') {
    if (isPriced) return [];
    throw new Inexpressible('is sent with priced calls alone: give the operation a price (--price, x-price)');
  }
  if (OFTEN_SENT.has(header))
    throw new Inexpressible('is a header that is sent where the caller has it: make it optional');
  throw new Inexpressible(
    `is a header: put ${name} under backend.headers of the configuration${required ? '' : ' to send it'}`,
  );
}

function inputOf(
  name: string,
  where: 'path' | 'query',
  { file, value }: { readonly file: string; readonly value: JsonObject },
  reader: SchemaReader,
): { readonly parameter: InputParameter; readonly leftOut: readonly LeftOut[] } {
  const fault = nameFault(name);
  if (fault !== undefined) throw new Inexpressible(fault);
  const [media, content] = Object.entries(isObject(value['content']) ? value['content'] : {})[0] ?? [];
  if (media !== undefined && (where === 'path' || !isJson(media)))
    throw new Inexpressible(`is written as ${media}: give it a schema in place of content`);
  const source = (isObject(content) ? content['schema'] : value['schema']) ?? true;
  const { schema, leftOut } = reader.read({ file, value: source });
  const style = media === undefined ? styleOf(where, value, schema) : 'json';
  const isWhole = where === 'path' || style === 'json';
  const sent = isWhole ? schema : withoutEmpty(schema, value['required'] === true);
  const text = typeof value['description'] === 'string' ? plainText(value['description'], LONGEST_NOTE) : '';
  return {
    parameter: {
      ...{ name, in: where, required: where === 'path' || value['required'] === true, style },
      schema: { ...sent, ...(text === '' ? {} : { description: text }) },
    },
    leftOut: leftOut.map(({ path, reason }) => ({ path: `${name}.${path}`, reason })),
  };
}

/** @throws Inexpressible for a style that the gateway does not write */
function styleOf(where: 'path' | 'query', parameter: JsonObject, schema: JsonObject): PairStyle | undefined {
  const style = parameter['style'] ?? (where === 'path' ? 'simple' : 'form');
  const explode = parameter['explode'] ?? style === 'form';
  const written = `is written in the style ${String(style)}`;
  if (where === 'path') {
    if (style !== 'simple') throw new Inexpressible(`${written}: use simple`);
    if (mayBe(schema, 'array') || mayBe(schema, 'object'))
      throw new Inexpressible('is a list or an object in the path: give it type: string');
    return undefined;
  }
  if (style === 'deepObject') return mayBe(schema, 'array') || mayBe(schema, 'object') ? 'deepObject' : undefined;
  if (mayBe(schema, 'object')) throw new Inexpressible(`${written}, an object: use deepObject`);
  if (!mayBe(schema, 'array')) return undefined;
  if (itemsOf(schema).some((items) => mayBe(items, 'object') || mayBe(items, 'array')))
    throw new Inexpressible(`${written}, a list of lists or objects: use content: application/json`);
  if (style === 'form') return explode === true ? undefined : 'comma';
  if (style === 'spaceDelimited') return explode === true ? undefined : 'space';
  if (style === 'pipeDelimited') return explode === true ? undefined : 'pipe';
  throw new Inexpressible(`${written}: use form`);
}

/** Whether a value of the schema may be of this type; one that says no type is read as a scalar. */
export function mayBe(schema: Json, type: 'array' | 'object' | 'null'): boolean {
  if (!isObject(schema)) return false;
  const { type: own, allOf, anyOf, oneOf } = schema;
  if (own !== undefined) return [own].flat().includes(type);
  return [allOf, anyOf, oneOf].some((parts) => Array.isArray(parts) && parts.some((part) => mayBe(part, type)));
}

export function itemsOf(schema: JsonObject): readonly JsonObject[] {
  const parts = [schema['allOf'], schema['anyOf'], schema['oneOf']].flat().filter((part) => isObject(part));
  const items = [schema['items'], ...listed(schema['prefixItems'])].filter((item) => isObject(item));
  return [...items, ...parts.flatMap(itemsOf)];
}
