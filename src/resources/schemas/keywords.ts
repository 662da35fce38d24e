import { isObject, type Json, type JsonObject } from '../../json/types.ts';

/** What stands behind a keyword: one schema, a list of them, schemas by name, or a plain value. */
type KeywordShape = 'schema' | 'schemas' | 'named' | 'value';

/**
 * Where the schemas behind a keyword apply. `member`: to a part of the value (closed on its own).
 * `same`: to the same value, so they must not be closed one by one. `condition`: they only ask a
 * question, and closing them would change the answer.
 */
export type KeywordPlace = 'member' | 'same' | 'condition' | 'definition';

interface Keyword {
  readonly shape: KeywordShape;
  readonly place: KeywordPlace;
  /** JSON types it says something about; undefined: all. */
  readonly types?: readonly string[];
}

const value = (...types: string[]): Keyword =>
  types.length === 0 ? { shape: 'value', place: 'same' } : { shape: 'value', place: 'same', types };
const member = (shape: KeywordShape, type: string): Keyword => ({ shape, place: 'member', types: [type] });
const condition = (type?: string): Keyword =>
  type === undefined ? { shape: 'schema', place: 'condition' } : { shape: 'schema', place: 'condition', types: [type] };
/**
 * MCP 2026-07-28, "Custom Headers from Tool Parameters": the argument is repeated in the header
 * `Mcp-Param-{value}`.
 */
export const MIRROR_KEYWORD = 'x-mcp-header';

const number = value('number', 'integer');
const string = value('string');
const array = value('array');
const object = value('object');

/**
 * Every keyword of JSON Schema 2020-12 that is enforced here, plus pure annotations. What is not
 * listed is refused: an operator must be able to trust that each keyword written is a rule. Left
 * out on purpose: content* (never asserted), $id and the dynamic references (one document,
 * references by JSON pointer only; an $anchor is a mere name).
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
  ['$defs', { shape: 'named', place: 'definition' }],
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
  ['dependentSchemas', { shape: 'named', place: 'same', types: ['object'] }],
  ['allOf', { shape: 'schemas', place: 'same' }],
  ['anyOf', { shape: 'schemas', place: 'same' }],
  ['oneOf', { shape: 'schemas', place: 'same' }],
  ['then', { shape: 'schema', place: 'same' }],
  ['else', { shape: 'schema', place: 'same' }],
  ['if', condition()],
  ['not', condition()],
]);

/**
 * Keywords whose schemas apply to the same value: beside them only `unevaluatedProperties` can
 * close an object.
 */
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
  readonly place: KeywordPlace;
  /** Steps from the outer schema, the keyword first. */
  readonly steps: readonly (string | number)[];
  readonly schema: Json;
}

/** The schemas directly inside a schema. Values of the wrong shape are left to the meta-schema. */
export function subschemas(schema: JsonObject): readonly Subschema[] {
  const found: Subschema[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = KEYWORDS.get(keyword);
    if (rule === undefined || rule.shape === 'value') continue;
    const { place } = rule;
    if (rule.shape === 'schema') found.push({ keyword, place, steps: [keyword], schema: value });
    else if (rule.shape === 'schemas' && Array.isArray(value))
      for (const [index, item] of (value as readonly Json[]).entries())
        found.push({ keyword, place, steps: [keyword, index], schema: item });
    else if (rule.shape === 'named' && isObject(value))
      for (const [name, item] of Object.entries(value))
        found.push({ keyword, place, steps: [keyword, name], schema: item });
  }
  return found;
}

/** A copy with every direct subschema replaced by what `change` makes of it. */
export function withSubschemas(schema: JsonObject, change: (inner: Subschema) => Json): JsonObject {
  const copy: Record<string, Json> = { ...schema };
  for (const inner of subschemas(schema)) {
    const [keyword, key] = inner.steps;
    if (typeof keyword !== 'string') continue;
    if (key === undefined) copy[keyword] = change(inner);
    else if (typeof key === 'number') {
      const list = copy[keyword];
      if (Array.isArray(list))
        copy[keyword] = (list as readonly Json[]).map((item, at) => (at === key ? change(inner) : item));
    } else {
      const named = copy[keyword];
      if (isObject(named)) copy[keyword] = { ...named, [key]: change(inner) };
    }
  }
  return copy;
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

/**
 * A schema and all that speak about the same value with it, references followed (they are acyclic)
 * and `if` included.
 */
export function sameValue(schema: JsonObject, root: JsonObject): readonly JsonObject[] {
  const found: JsonObject[] = [schema];
  const parts = subschemas(schema)
    .filter(({ keyword, place }) => place === 'same' || keyword === 'if')
    .map((inner) => inner.schema);
  const target = schema['$ref'] === undefined ? undefined : resolveReference(root, schema['$ref']);
  for (const part of target === undefined ? parts : [...parts, target])
    if (isObject(part)) found.push(...sameValue(part, root));
  return found;
}

/** One thing wrong with a resource; `path` is relative to it. */
export interface ResourceFault {
  readonly path: string;
  readonly message: string;
}
