/** Imports a document, sells every operation through a gateway, and calls each of them. */

import fc from 'fast-check';
import { type ConfigObject, NO_CHAIN } from '../../spec/support/config.ts';
import { openGateway, type TestGateway } from '../../spec/support/gateway.ts';
import { sampleResources } from '../../spec/support/resources.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { FORM_TYPE } from '../../src/resources/backend-request.ts';
import { resolveReference } from '../../src/resources/schemas/keywords.ts';
import { templateParameters } from '../../src/resources/url-template.ts';
import { type Import, importOpenApi } from '../../tools/import/import.ts';
import { type Merchant, startMerchant } from './merchant.ts';

interface Outcome {
  /** Operations of the document. */
  readonly operations: number;
  readonly imported: number;
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  /** Resources that were called: all, or a part of them. */
  readonly called: number;
  /** Those of them that did not answer 2xx, or whose values arrived otherwise. */
  readonly failures: readonly Failure[];
}

interface Failure {
  readonly resource: string;
  readonly why: string;
}

type Resources = Readonly<Record<string, WrittenResource>>;

/** Branches of anyOf and oneOf that are tried before a schema counts as one without an input. */
const CHOICES = 8;

export function importDocument(document: JsonObject, ignoreSecurity: boolean): Import {
  return importOpenApi(
    { root: 'openapi.json', files: new Map([['openapi.json', document]]) },
    {
      ...{ price: undefined, currency: 'USDC', ignoreSecurity, basePath: undefined, expose: [] },
      choice: { tags: [], operations: [] },
    },
  );
}

/** `most`: how many resources are called, at equal distances over the document. */
export async function runDocument(
  document: JsonObject,
  { ignoreSecurity, most }: { readonly ignoreSecurity: boolean; readonly most: number },
): Promise<Outcome> {
  const { resources, skipped } = importDocument(document, ignoreSecurity);
  const all = Object.entries(resources);
  const step = Math.max(1, all.length / most);
  const called = all.filter((_entry, index) => Math.floor(index / step) !== Math.floor((index - 1) / step));
  return {
    ...{ operations: all.length + skipped.length, imported: all.length, skipped, called: called.length },
    failures: await failuresOf(document, Object.fromEntries(called)),
  };
}

/** Sells resources of a document and calls each with the least input and with the most. */
export async function failuresOf(document: JsonObject, resources: Resources): Promise<readonly Failure[]> {
  const form = Object.values(resources).some(({ backend }) => backend.contentType === FORM_TYPE);
  const called = Object.values(resources).map(({ backend }) => backend);
  const merchant = await startMerchant(document, { form, called });
  const gateway = await openGateway({
    ...{ backendUrl: merchant.url, chain: NO_CHAIN, facilitator: { mode: 'local' } },
    overrides: { payments: undefined, resources: only(resources) },
  });
  const failures: Failure[] = [];
  try {
    for (const [id, resource] of Object.entries(resources))
      for (const amount of ['least', 'most'] as const) {
        const why = await failure({ gateway, merchant }, id, resource, amount);
        if (why === undefined) continue;
        failures.push({ resource: `${id} (${resource.backend.method} ${resource.backend.path}, ${amount})`, why });
        break;
      }
  } finally {
    await gateway.close();
    await merchant.close();
  }
  return failures;
}

/** Without the sample resources of the local world. */
function only(resources: Resources): ConfigObject {
  return { ...Object.fromEntries(Object.keys(sampleResources('')).map((id) => [id, undefined])), ...resources };
}

/** Why no input of this amount is answered as it should; undefined when one is. */
async function failure(
  { gateway, merchant }: { readonly gateway: TestGateway; readonly merchant: Merchant },
  id: string,
  resource: WrittenResource,
  amount: Amount,
): Promise<string | undefined> {
  let why = '';
  for (let choice = 0; choice < CHOICES; choice += 1) {
    const input = plainInPath(resource.backend.path, inputFor(resource.inputSchema ?? {}, amount, choice));
    const response = await gateway.invoke(id, input);
    const answer = await response.text();
    if (response.ok) {
      const lost = lostValue(input, resource, JSON.parse(answer));
      if (lost === undefined) return undefined;
      why ||= `${lost}; input ${JSON.stringify(input).slice(0, 300)}`;
    } else
      why ||= `${response.status === 502 ? `the merchant: ${merchant.lastRefusal()}` : answer.slice(0, 400)}; input ${JSON.stringify(input).slice(0, 300)}`;
  }
  return why;
}

/** A value of the input that the merchant read otherwise; undefined where all are the same. */
function lostValue(input: JsonObject, { backend }: WrittenResource, read: JsonObject): string | undefined {
  const { query = {}, params = {}, body = null } = read;
  const bindings = backend.inputBindings;
  const inPath = [...backend.path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  for (const [name, value] of Object.entries(input)) {
    const places: readonly Json[] = inPath.includes(name)
      ? [params]
      : bindings?.query?.includes(name) === true
        ? [query]
        : bindings?.body === name
          ? [{ [name]: body }]
          : [query, body];
    if (!places.some((place) => isObject(place) && Object.hasOwn(place, name) && isRead(value, place[name])))
      if (!isEmpty(value)) return `${name} was read as ${JSON.stringify(places).slice(0, 300)}`;
  }
  return undefined;
}

/** An empty list or object has no pair in a query or a form. */
function isEmpty(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).every(isEmpty);
}

/** Whether a value arrived: texts of scalars are compared, defaults may have been added. */
function isRead(sent: Json, read: Json | undefined): boolean {
  if (isEmpty(sent)) return true;
  if (Array.isArray(sent))
    return (
      Array.isArray(read) &&
      read.length === sent.length &&
      sent.every((item, index) => isRead(item as Json, read[index] as Json))
    );
  if (isObject(sent)) return isObject(read) && Object.entries(sent).every(([name, item]) => isRead(item, read[name]));
  return String(sent) === String(read);
}

/** Without the separators that a path value may have only where its schema lists them. */
function plainInPath(path: string, input: JsonObject): JsonObject {
  const plain = templateParameters(path).flatMap((name) => {
    const value = input[name];
    return typeof value === 'string' ? [[name, value.replaceAll(/[/\\;?#%]/g, '_')] as const] : [];
  });
  return { ...input, ...Object.fromEntries(plain) };
}

/** `least`: what is required; `most`: everything, to a bounded depth. */
type Amount = 'least' | 'most';

/** Of the first choices; later ones are shallower, because some schemas fit nothing deep down. */
const MAX_DEPTH = 5;
/** Needs encoding in paths, queries and forms, and has no separator of a list in it. */
const TEXT = 'a&b=é+%25?#';
const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-02',
  time: '03:04:05Z',
  'date-time': '2026-01-02T03:04:05Z',
  duration: 'P1D',
  uri: 'https://example.com/a?b=c',
  'uri-reference': '/a',
  'uri-template': '/a/{b}',
  url: 'https://example.com/a',
  email: 'a@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
  byte: 'YWJj',
  regex: 'a',
  'json-pointer': '/a',
};

/** `choice`: which branch of anyOf and oneOf is taken, round about. */
function inputFor(schema: JsonObject, amount: Amount, choice: number): JsonObject {
  const deepest = Math.max(2, MAX_DEPTH - Math.floor(choice / 2));
  const value = make(schema, 0);
  return isObject(value) ? value : {};

  function make(source: Json, depth: number): Json {
    if (!isObject(source)) return TEXT;
    const flat = flattened(source);
    const { enum: values, const: only, type } = flat;
    if (only !== undefined) return only;
    if (Array.isArray(values)) return values.find((one) => one !== null && one !== '') ?? values[0] ?? null;
    const named = Array.isArray(type) ? (type.find((name) => name !== 'null') ?? 'null') : type;
    switch (named) {
      case 'object':
        return objectOf(flat, depth);
      case 'array':
        return arrayOf(flat, depth);
      case 'integer':
      case 'number':
        return numberOf(flat, named === 'integer');
      case 'boolean':
        return true;
      case 'null':
        return null;
      default:
        return textOf(flat);
    }
  }

  /** One schema that says what all parts say, with one branch of each choice. */
  function flattened(source: JsonObject): JsonObject {
    const { $ref: reference, allOf, anyOf, oneOf, ...rest } = source;
    const branch = (list: Json | undefined): readonly Json[] =>
      Array.isArray(list) && list.length > 0 ? [list[choice % list.length] as Json] : [];
    const target = reference === undefined ? undefined : resolveReference(schema, reference);
    const parts = [
      ...(target === undefined ? [] : [target]),
      ...(Array.isArray(allOf) ? allOf : []),
      ...branch(anyOf),
      ...branch(oneOf),
    ];
    return parts
      .filter((part): part is JsonObject => isObject(part as Json))
      .map(flattened)
      .reduce<JsonObject>(together, rest);
  }

  function objectOf(flat: JsonObject, depth: number): Json {
    const properties = isObject(flat['properties']) ? flat['properties'] : {};
    const required = new Set(Array.isArray(flat['required']) ? (flat['required'] as readonly Json[]) : []);
    const deep = depth >= deepest || amount === 'least';
    const wanted = Object.entries(properties).filter(([name, part]) => part !== false && (required.has(name) || !deep));
    const made: [string, Json][] = wanted.map(([name, part]) => [name, make(part, depth + 1)]);
    const { additionalProperties: other, minProperties = 0 } = flat;
    for (const name of required)
      if (typeof name === 'string' && !Object.hasOwn(properties, name)) made.push([name, make(other ?? {}, depth + 1)]);
    if (other !== undefined && other !== false && (made.length < Number(minProperties) || (made.length === 0 && !deep)))
      made.push(['some_name', make(other, depth + 1)]);
    for (const [name, part] of Object.entries(properties)) {
      if (made.length >= Number(minProperties)) break;
      if (!made.some(([known]) => known === name)) made.push([name, make(part, depth + 1)]);
    }
    return Object.fromEntries(made);
  }

  function arrayOf(flat: JsonObject, depth: number): Json {
    const least = Number(flat['minItems'] ?? 0);
    const most = Number(flat['maxItems'] ?? Number.POSITIVE_INFINITY);
    const { prefixItems } = flat;
    if (Array.isArray(prefixItems)) return prefixItems.map((part) => make(part as Json, depth + 1));
    const count = Math.min(most, Math.max(least, amount === 'most' && depth < deepest ? 2 : 0));
    const items = Array.from({ length: count }, () => make(flat['items'] ?? {}, depth + 1));
    if (flat['uniqueItems'] !== true) return items;
    const { enum: values } = isObject(flat['items']) ? flattened(flat['items']) : {};
    if (Array.isArray(values)) return (values as readonly Json[]).slice(0, Math.max(count, least));
    if (items.some((item) => typeof item === 'object' || typeof item === 'boolean'))
      return items.slice(0, Math.max(1, least));
    return items.map((item, index) =>
      index === 0
        ? item
        : typeof item === 'string'
          ? `${item}${index}`
          : typeof item === 'number'
            ? item + index
            : item,
    );
  }
}

function together(a: JsonObject, b: JsonObject): JsonObject {
  const properties = { ...(isObject(a['properties']) ? a['properties'] : {}), ...declared(b, a) };
  const required = [a['required'], b['required']].flat().filter((name) => typeof name === 'string');
  return {
    ...b,
    ...a,
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  };
}

/** A name that the outer schema declares with `true` only to close it is described by the part. */
function declared(part: JsonObject, outer: JsonObject): JsonObject {
  const known = isObject(outer['properties']) ? outer['properties'] : {};
  return Object.fromEntries(
    Object.entries(isObject(part['properties']) ? part['properties'] : {}).filter(
      ([name]) => !isObject(known[name]) || Object.keys(known[name]).length === 0,
    ),
  );
}

function numberOf(flat: JsonObject, whole: boolean): number {
  const number = (keyword: string): number | undefined => {
    const value = flat[keyword];
    return typeof value === 'number' ? value : undefined;
  };
  const step = number('multipleOf') ?? (whole ? 1 : 0.5);
  const above = number('exclusiveMinimum');
  const below = number('exclusiveMaximum');
  const least = number('minimum') ?? (above === undefined ? undefined : above + step);
  const most = number('maximum') ?? (below === undefined ? undefined : below - step);
  const value = least ?? Math.min(most ?? 7, 7);
  return Math.ceil(value / step) * step;
}

function textOf({ format, pattern, minLength, maxLength }: JsonObject): string {
  const least = typeof minLength === 'number' ? minLength : 1;
  const most = typeof maxLength === 'number' ? maxLength : Number.POSITIVE_INFINITY;
  if (typeof pattern === 'string') {
    const expression = new RegExp(pattern);
    // The generator of texts knows no word boundary; without them the text is checked all the same.
    const simpler = new RegExp(pattern.replaceAll('\\b', ''));
    const texts = fc
      .sample(fc.stringMatching(simpler, { size: 'small' }), { numRuns: 40, seed: 7 })
      .flatMap((text) => [text, text.repeat(Math.ceil(least / (text.length || 1))).slice(0, Math.max(least, 1))])
      .filter((text) => expression.test(text));
    const plain = texts.filter((text) => text.length >= least && text.length <= most && text !== '');
    return plain.find((text) => /^[\x21-\x7e]+$/.test(text)) ?? plain[0] ?? texts[0] ?? '';
  }
  const sample = typeof format === 'string' ? FORMATS[format] : undefined;
  if (sample !== undefined) return sample;
  return TEXT.repeat(Math.ceil(least / TEXT.length)).slice(0, Math.max(least, Math.min(most, TEXT.length)));
}
