/** What stands behind a keyword: one schema, a list of them, schemas by name, or a plain value. */
type KeywordShape = 'schema' | 'schemas' | 'named' | 'value';

/**
 * Where the schemas behind a keyword apply. `member`: to a part of the value (closed on its own). `same`: to the same value, so they
 * must not be closed one by one. `condition`: they only ask a question, and closing them would change the answer.
 */
export type KeywordPlace = 'member' | 'same' | 'condition' | 'definition';

export interface Keyword {
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
/** MCP 2026-07-28, "Custom Headers from Tool Parameters": the argument is repeated in the header `Mcp-Param-{value}`. */
export const MIRROR_KEYWORD = 'x-mcp-header';

const number = value('number', 'integer');
const string = value('string');
const array = value('array');
const object = value('object');

/**
 * Every keyword of JSON Schema 2020-12 that is enforced here, plus pure annotations. What is not listed is refused: an operator must
 * be able to trust that each keyword written is a rule. Left out on purpose: content* (never asserted), $id and the dynamic
 * references (one document, references by JSON pointer only; an $anchor is a mere name).
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

/** Keywords whose schemas apply to the same value: beside them only `unevaluatedProperties` can close an object. */
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
