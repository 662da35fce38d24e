/** The JSON Schema keywords that are enforced, and the walk through the schemas behind them. */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';

/** The dialect, by the name of its meta-schema. */
export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** The value of a keyword: one schema, a list of them, schemas by name, or a plain value. */
type KeywordShape = 'schema' | 'schemas' | 'named' | 'value';

/**
 * The target of a keyword's schemas. `member`: a part of the value, so each is closed. `same`: the
 * same value, so they must not be closed one by one. `condition`: they decide a branch, and closing
 * them would change the decision. `definition`: no value, unless a reference names them.
 */
export type KeywordTarget = 'member' | 'same' | 'condition' | 'definition';

interface Keyword {
  readonly shape: KeywordShape;
  readonly applies: KeywordTarget;
  /** JSON types that it constrains; undefined: all. */
  readonly types?: readonly string[];
}

const value = (...types: string[]): Keyword =>
  types.length === 0 ? { shape: 'value', applies: 'same' } : { shape: 'value', applies: 'same', types };
const member = (shape: KeywordShape, type: string): Keyword => ({ shape, applies: 'member', types: [type] });
const condition = (type?: string): Keyword =>
  type === undefined
    ? { shape: 'schema', applies: 'condition' }
    : { shape: 'schema', applies: 'condition', types: [type] };
/** MCP 2026-07-28: the header `Mcp-Param-{value}` repeats the argument (`tool-form.ts`). */
export const MIRROR_KEYWORD = 'x-mcp-header';

const number = value('number', 'integer');
const string = value('string');
const array = value('array');
const object = value('object');

/**
 * Every keyword of JSON Schema 2020-12 that is enforced here, and pure annotations. Any other one
 * is refused, so that each keyword that an operator writes is a rule. Left out on purpose: content*
 * (never asserted), $id and the dynamic references (references are JSON pointers into one document;
 * an $anchor is only a name).
 */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['type', value()],
  ['enum', value()],
  ['const', value()],
  ['title', value()],
  ['description', value()],
  ['default', value()],
  ['examples', value()],
  ['deprecated', value()],
  ['readOnly', value()],
  ['writeOnly', value()],
  ['$comment', value()],
  ['$anchor', value()],
  [MIRROR_KEYWORD, value('string', 'integer', 'boolean')],
  ['$schema', value()],
  ['$ref', value()],
  ['$defs', { shape: 'named', applies: 'definition' }],
  ['multipleOf', number],
  ['minimum', number],
  ['maximum', number],
  ['exclusiveMinimum', number],
  ['exclusiveMaximum', number],
  ['minLength', string],
  ['maxLength', string],
  ['pattern', string],
  ['format', string],
  ['minItems', array],
  ['maxItems', array],
  ['uniqueItems', array],
  ['minContains', array],
  ['maxContains', array],
  ['items', member('schema', 'array')],
  ['prefixItems', member('schemas', 'array')],
  ['unevaluatedItems', member('schema', 'array')],
  ['contains', condition('array')],
  ['minProperties', object],
  ['maxProperties', object],
  ['required', object],
  ['dependentRequired', object],
  ['properties', member('named', 'object')],
  ['patternProperties', member('named', 'object')],
  ['additionalProperties', member('schema', 'object')],
  ['unevaluatedProperties', member('schema', 'object')],
  ['propertyNames', condition('object')],
  ['dependentSchemas', { shape: 'named', applies: 'same', types: ['object'] }],
  ['allOf', { shape: 'schemas', applies: 'same' }],
  ['anyOf', { shape: 'schemas', applies: 'same' }],
  ['oneOf', { shape: 'schemas', applies: 'same' }],
  ['then', { shape: 'schema', applies: 'same' }],
  ['else', { shape: 'schema', applies: 'same' }],
  ['if', condition()],
  ['not', condition()],
]);

/** Keywords whose schemas apply to the same value. */
export const IN_PLACE: readonly string[] = [
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'if',
  'then',
  'else',
  'dependentSchemas',
];

/** A schema inside a schema. */
export interface Subschema {
  readonly keyword: string;
  readonly applies: KeywordTarget;
  /** Steps from the outer schema, the keyword first. */
  readonly steps: readonly (string | number)[];
  readonly schema: Json;
}

/** The schemas directly inside a schema. The meta-schema refuses values of the wrong shape. */
export function subschemas(schema: JsonObject): readonly Subschema[] {
  let found: Subschema[] | undefined;
  visitSubschemas(schema, (inner) => {
    found ??= [];
    found.push(inner);
    return true;
  });
  return found ?? NONE;
}

const NONE: readonly Subschema[] = [];

/**
 * Visits the schemas directly inside a schema one by one, until `visit` returns false: a file can
 * hold more than are allowed. A start with many resources walks mostly here, and a generator costs
 * several times as much as a visitor.
 */
export function visitSubschemas(schema: JsonObject, visit: (inner: Subschema) => boolean): void {
  for (const keyword in schema) {
    const rule = KEYWORDS.get(keyword);
    if (rule === undefined || rule.shape === 'value') continue;
    const value = schema[keyword] ?? null;
    const { applies, shape } = rule;
    if (shape === 'schema') {
      if (!visit({ keyword, applies, steps: [keyword], schema: value })) return;
    } else if (shape === 'schemas') {
      if (!Array.isArray(value)) continue;
      for (const [index, item] of (value as readonly Json[]).entries())
        if (!visit({ keyword, applies, steps: [keyword, index], schema: item })) return;
    } else if (isObject(value)) {
      for (const name in value)
        if (!visit({ keyword, applies, steps: [keyword, name], schema: value[name] ?? null })) return;
    }
  }
}

/** The schema with `change` applied to every direct subschema; itself where nothing changes. */
export function withSubschemas(schema: JsonObject, change: (inner: Subschema) => Json): JsonObject {
  const changed = new Map<string, Record<string | number, Json> | Json[] | Json>();
  for (const inner of subschemas(schema)) {
    const [keyword, key] = inner.steps;
    const made = change(inner);
    if (typeof keyword !== 'string' || made === inner.schema) continue;
    if (key === undefined) changed.set(keyword, made);
    else {
      const copy = changed.get(keyword) ?? copyOf(schema[keyword] ?? null);
      (copy as Record<string | number, Json>)[key] = made;
      changed.set(keyword, copy);
    }
  }
  return changed.size === 0 ? schema : { ...schema, ...(Object.fromEntries(changed) as JsonObject) };
}

function copyOf(container: Json): Json {
  if (Array.isArray(container)) return [...(container as readonly Json[])];
  return isObject(container) ? { ...container } : container;
}

/** The target of a local reference (`#`, `#/$defs/name`), or undefined. */
export function resolveReference(root: JsonObject, reference: Json): Json | undefined {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined;
  let node: Json | undefined = root;
  for (const token of reference.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isObject(node) || !Object.hasOwn(node, name)) return undefined;
    node = node[name];
  }
  return node;
}

/** A schema and all others for the same value, with references (they are acyclic) and `if`. */
export function sameValue(schema: JsonObject, root: JsonObject): readonly JsonObject[] {
  const found: JsonObject[] = [schema];
  const parts = subschemas(schema)
    .filter(({ keyword, applies }) => applies === 'same' || keyword === 'if')
    .map((inner) => inner.schema);
  const target = schema['$ref'] === undefined ? undefined : resolveReference(root, schema['$ref']);
  for (const part of target === undefined ? parts : [...parts, target])
    if (isObject(part)) found.push(...sameValue(part, root));
  return found;
}

/** One fault of a resource; `path` is relative to it. */
export interface ResourceFault {
  readonly path: string;
  readonly message: string;
}

/** Carries a payment proof (specification 5). */
export const PAYMENT_MEMBER = '_payment';
/** Carries a mandate (ap2 7.1). */
export const AUTHORIZATION_MEMBER = '_authorization';
export const RESERVED_NAMES: ReadonlySet<string> = new Set([PAYMENT_MEMBER, AUTHORIZATION_MEMBER]);
