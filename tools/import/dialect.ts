/**
 * Rewrites the keywords of one schema of OpenAPI 3.0 or 3.1 as JSON Schema 2020-12 in the form that
 * the gateway enforces: a type beside each keyword that needs one, and nothing without effect.
 * Schemas inside are left as they are.
 */

import type { Json, JsonObject } from '../../src/json/json.ts';
import { patternFault } from '../../src/resources/patterns/linear.ts';
import { KNOWN_FORMATS } from '../../src/resources/schemas/ajv.ts';
import { IN_PLACE, KEYWORDS } from '../../src/resources/schemas/keywords.ts';
import { Inexpressible } from './references.ts';
import { LONGEST_NOTE, plainText } from './texts.ts';

const TYPES: ReadonlySet<Json> = new Set<Json>(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
/** Dropped: annotations without use for an input, and what this importer reads itself. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['title', 'description', 'examples', 'default', 'readOnly', 'writeOnly', '$comment', '$anchor', '$schema'],
  ...['$ref', '$defs', 'type', 'enum', 'exclusiveMinimum', 'exclusiveMaximum', 'format', 'pattern'],
]);
/** What says which members an object has. */
const MEMBERS: readonly string[] = [
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'required'],
  ...['dependentRequired', ...IN_PLACE],
];
const CLASSES = ['object', 'array', 'string', 'number'] as const;
const COMBINING: readonly string[] = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'];
const INT32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 } as const;
/** Longest default or example that is kept, characters of JSON. */
const LONGEST_VALUE = 100;

/** @throws Inexpressible for what the gateway cannot enforce */
export function inDialect(source: JsonObject): JsonObject {
  if (source['$dynamicRef'] !== undefined) throw new Inexpressible('has a $dynamicRef: write $ref');
  const types = typesOf(source);
  const rules = { ...plainKeywords(source), ...bounds(source, types), ...textRules(source, types) };
  const known = types ?? impliedTypes(rules);
  const kept = Object.entries(rules).filter(([keyword]) => appliesTo(keyword, known));
  return {
    ...(known === undefined ? {} : { type: known.length === 1 ? (known[0] ?? '') : known }),
    ...annotations(source),
    ...Object.fromEntries(kept),
    ...allowedValues(source, known),
    ...openObject(source, known),
  };
}

/** The declared types, with `null` where 3.0 says `nullable`. */
function typesOf({ type, nullable }: JsonObject): readonly string[] | undefined {
  if (type === undefined) return undefined;
  const types = [type].flat() as readonly Json[];
  const wrong = types.find((name) => !TYPES.has(name));
  if (wrong !== undefined || types.length === 0)
    throw new Inexpressible(`has the type ${JSON.stringify(wrong)}: use another, such as string`);
  const named = [...new Set(types as readonly string[])];
  return nullable === true && !named.includes('null') ? [...named, 'null'] : named;
}

/** Keywords that are the same in all dialects. */
function plainKeywords(source: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(source).filter(
      ([keyword]) => KEYWORDS.has(keyword) && !keyword.startsWith('x-') && !DROPPED.has(keyword),
    ),
  );
}

/** 3.0 has `exclusiveMinimum: true` beside `minimum`, and formats that are ranges. */
function bounds(source: JsonObject, types: readonly string[] | undefined): JsonObject {
  const found: Record<string, Json> = {};
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const { [bound]: limit, [exclusive]: edge } = source;
    const usual = types?.includes('integer') === true && source['format'] === 'int32' ? INT32[bound] : undefined;
    if (typeof edge === 'number') found[exclusive] = edge;
    else if (edge === true && typeof limit === 'number') found[exclusive] = limit;
    else if (limit === undefined && usual !== undefined) found[bound] = usual;
  }
  return found;
}

function textRules({ format, pattern }: JsonObject, types: readonly string[] | undefined): JsonObject {
  const isText = types === undefined || types.includes('string');
  const found: Record<string, Json> = {};
  if (isText && typeof format === 'string' && KNOWN_FORMATS.includes(format)) found['format'] = format;
  if (isText && typeof pattern === 'string') {
    const fault = patternFault(pattern);
    if (fault !== undefined)
      throw new Inexpressible(
        `has the pattern ${JSON.stringify(pattern)}, which ${fault}${fault.includes(': ') ? '' : ': write it otherwise'}, or leave it out`,
      );
    found['pattern'] = withoutNeedlessEscapes(pattern);
  }
  return found;
}

/** Agents compile patterns with the flag `u`, which refuses `\\:` and its likes. */
function withoutNeedlessEscapes(pattern: string): string {
  if (compiles(pattern)) return pattern;
  const plain = pattern.replaceAll(/\\([^\w\s^$\\.*+?()[\]{}|/-])/g, '$1');
  return compiles(plain) ? plain : pattern;
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') !== undefined;
  } catch {
    return false;
  }
}

/** The type that the keywords of a schema without type are for. */
function impliedTypes(rules: JsonObject): readonly string[] | undefined {
  const classes = CLASSES.filter((type) =>
    Object.keys(rules).some((keyword) => !COMBINING.includes(keyword) && KEYWORDS.get(keyword)?.types?.includes(type)),
  );
  if (classes.length > 1) throw new Inexpressible(`has no type, and rules for ${classes.join(' and ')}: name its type`);
  return classes.length === 0 ? undefined : classes;
}

function appliesTo(keyword: string, types: readonly string[] | undefined): boolean {
  const wanted = KEYWORDS.get(keyword)?.types;
  return wanted === undefined || types?.some((type) => wanted.includes(type)) === true;
}

function annotations({ description, deprecated, default: usual, example, enum: values }: JsonObject): JsonObject {
  const text = typeof description === 'string' ? plainText(description, LONGEST_NOTE) : '';
  const shown = usual === undefined && values === undefined && isShort(example) ? { examples: [example] } : {};
  return {
    ...(text === '' ? {} : { description: text }),
    ...(deprecated === true ? { deprecated: true } : {}),
    ...(isShort(usual) ? { default: usual } : {}),
    ...shown,
  };
}

function isShort(value: Json | undefined): value is Json {
  return value !== undefined && JSON.stringify(value).length <= LONGEST_VALUE && !JSON.stringify(value).includes('${');
}

/**
 * `enum` without repetitions, and with the null that 3.0 lets `nullable` add. A value that YAML
 * reads as a number or a boolean, because no quotes stand, is the text that the type says.
 */
function allowedValues({ enum: values }: JsonObject, types: readonly string[] | undefined): JsonObject {
  if (!Array.isArray(values)) return {};
  if (values.length === 0) throw new Inexpressible('has an empty enum: list its values, or leave it out');
  const isText = types?.every((type) => type === 'string' || type === 'null') === true;
  const typed = (values as readonly Json[]).map((value) =>
    isText && (typeof value === 'number' || typeof value === 'boolean') ? String(value) : value,
  );
  const listed: readonly Json[] = types?.includes('null') === true && !typed.includes(null) ? [...typed, null] : typed;
  return { enum: [...new Map(listed.map((value) => [JSON.stringify(value), value])).values()] };
}

/** An object of which nothing is said is open in OpenAPI, and closed here unless it says so. */
function openObject(source: JsonObject, types: readonly string[] | undefined): JsonObject {
  if (types?.includes('object') !== true || MEMBERS.some((keyword) => source[keyword] !== undefined)) return {};
  return { additionalProperties: true };
}
