/** Inputs that fit an input schema, made from nothing but the schema. */

import fc from 'fast-check';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import { resolveReference } from '../../src/resources/schemas/keywords.ts';

/** `least`: what is required; `most`: everything, to a bounded depth. */
export type Amount = 'least' | 'most';

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
export function inputFor(schema: JsonObject, amount: Amount, choice: number): JsonObject {
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
