/** Checks the schemas and texts that an operator writes: a keyword is enforced, or refused here. */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { nearest } from '../../problems/nearest.ts';
import { memberPath } from '../../problems/problem.ts';
import { patternFault } from '../patterns/linear.ts';
import { KNOWN_FORMATS, metaSchemaFaults } from './ajv.ts';
import {
  DIALECT,
  IN_PLACE,
  KEYWORDS,
  type KeywordTarget,
  RESERVED_NAMES,
  type ResourceFault,
  resolveReference,
  type Subschema,
  subschemas,
  visitSubschemas,
} from './keywords.ts';

/** Control characters, bidirectional and zero-width ones, the byte order mark, the tag alphabet. */
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029\u{e0000}-\u{e007f}]/u;
/** Allowed all the same: newline, tab, and joiners that several scripts and emoji need. */
const JOINERS = /\n|\t|\u00ad|\u200c|\u200d/g;

/** The fault of a published text, or undefined. */
export function textFault(text: string): string | undefined {
  if (!text.isWellFormed()) return 'must be well-formed Unicode (it has half a surrogate pair)';
  return HIDDEN.test(text.replace(JOINERS, ''))
    ? 'must not have control, bidirectional or invisible characters'
    : undefined;
}

/** Most schemas in one schema, references followed; bounds the cost of a validation. */
export const MAX_SUBSCHEMAS = 5_000;

const ALL_TYPES: readonly string[] = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];
/** Types that a schema declares for its value; undefined: none. */
type Types = readonly string[] | undefined;

export function schemaFaults(root: JsonObject, at: string): readonly ResourceFault[] {
  const tooMany = { path: at, message: `must not have more than ${MAX_SUBSCHEMAS} schemas, references followed` };
  if (hasTooMany(root)) return [tooMany];
  const faults: ResourceFault[] = [];
  /** The schemas around the current one: a reference to one of them is a cycle. */
  const open: Json[] = [];
  let budget = MAX_SUBSCHEMAS;

  const walk = (schema: Json, path: string, inherited: Types, applies: KeywordTarget): void => {
    budget -= 1;
    if (budget < 0 || !isObject(schema)) return;
    open.push(schema);
    const types = ownTypes(schema) ?? inherited;
    for (const [keyword, value] of Object.entries(schema)) {
      const message = keywordFault(keyword, value, types);
      if (message !== undefined) faults.push({ path: memberPath(path, keyword), message });
    }
    for (const name of applies === 'member' ? undeclared(schema) : [])
      faults.push({ path: memberPath(path, 'required'), message: `lists ${name}, which properties does not declare` });
    for (const keyword of unreliable(schema)) faults.push({ path: memberPath(path, keyword), message: UNRELIABLE });
    if (schema['$ref'] !== undefined) follow(schema['$ref'], memberPath(path, '$ref'), types);
    for (const inner of subschemas(schema))
      walk(inner.schema, inner.steps.reduce<string>(memberPath, path), innerTypes(inner, types), inner.applies);
    open.pop();
  };

  const follow = (reference: Json, path: string, types: Types): void => {
    const target = resolveReference(root, reference);
    if (target === undefined)
      faults.push({ path, message: 'must name a schema in this document, such as #/$defs/address' });
    else if (open.includes(target))
      faults.push({ path, message: 'must not lead back to itself: recursive schemas are refused' });
    else if (typeof reference === 'string')
      walk(target, reference.split('/').slice(1).reduce<string>(memberPath, at), types, 'definition');
  };

  walk(root, at, undefined, 'member');
  if (budget < 0) faults.push(tooMany);
  const told = new Set(faults.map(({ path }) => path));
  return [...faults, ...metaSchemaFaults(root, at).filter(({ path }) => !told.has(path))];
}

/**
 * Whether a schema has too many schemas inside, references not followed. No other check runs then:
 * a file can hold a hundred times as many.
 */
export function hasTooMany(root: JsonObject): boolean {
  let count = 0;
  const open: Json[] = [root];
  for (let schema = open.pop(); schema !== undefined; schema = open.pop()) {
    if (!isObject(schema)) continue;
    visitSubschemas(schema, (inner) => {
      count += 1;
      open.push(inner.schema);
      return count <= MAX_SUBSCHEMAS;
    });
    if (count > MAX_SUBSCHEMAS) return true;
  }
  return false;
}

/** The types that a schema inherits: those of the outer one when both describe the same value. */
function innerTypes({ keyword, applies }: Subschema, types: Types): Types {
  if (keyword === 'propertyNames') return ['string'];
  if (applies === 'definition') return ALL_TYPES;
  return applies === 'same' || keyword === 'if' || keyword === 'not' ? types : undefined;
}

/** An unknown type counts as all types: no keyword beside it is reported as without effect. */
function ownTypes({ type }: JsonObject): Types {
  if (type === undefined) return undefined;
  const own = typeof type === 'string' ? [type] : names(type);
  return own.every((name) => ALL_TYPES.includes(name)) ? own : ALL_TYPES;
}

const UNRELIABLE = `is not enforced reliably beside ${IN_PLACE.join(', ')}: use additionalProperties, or leave it out (objects are closed anyway)`;

/** Keywords that refuse valid input beside composition: the validator loses the parts' results. */
function unreliable(schema: JsonObject): readonly string[] {
  if (!IN_PLACE.some((keyword) => keyword in schema)) return [];
  return ['unevaluatedProperties', 'unevaluatedItems'].filter(
    (keyword) => keyword in schema && schema[keyword] !== true,
  );
}

/** Required names that closing would forbid: with a misspelt name every input would be refused. */
function undeclared(schema: JsonObject): readonly string[] {
  const { required, properties } = schema;
  if (!isObject(properties) || IN_PLACE.some((keyword) => keyword in schema)) return [];
  if (['patternProperties', 'additionalProperties', 'unevaluatedProperties'].some((keyword) => keyword in schema))
    return [];
  return names(required ?? null).filter((name) => !Object.hasOwn(properties, name));
}

function keywordFault(keyword: string, value: Json, types: Types): string | undefined {
  const rule = KEYWORDS.get(keyword);
  if (rule === undefined) {
    const hint = nearest(keyword, [...KEYWORDS.keys()]);
    return `is not a keyword that is enforced here${hint === undefined ? '' : `; did you mean ${hint}?`}`;
  }
  const wanted = rule.types;
  if (wanted !== undefined && types === undefined) return `needs "type: ${wanted[0]}" beside it, else it may not apply`;
  if (wanted !== undefined && !types?.some((type) => wanted.includes(type)))
    return `has no effect here: it is for type ${wanted.join(' or ')}`;
  return valueFault(keyword, value);
}

function valueFault(keyword: string, value: Json): string | undefined {
  switch (keyword) {
    case 'pattern':
      return typeof value === 'string' ? patternFault(value) : undefined;
    case 'patternProperties':
      return firstOf(names(value), (pattern) => patternFault(pattern));
    case 'type':
      return firstOf(typeof value === 'string' ? [value] : names(value), typeFault);
    case 'format':
      return typeof value === 'string' ? formatFault(value) : undefined;
    case '$schema':
      return value === DIALECT ? undefined : `must be ${DIALECT}`;
    case 'title':
    case 'description':
    case '$comment':
      return typeof value === 'string' ? textFault(value) : undefined;
    case 'properties':
    case 'required':
    case 'dependentRequired':
    case 'dependentSchemas':
      return firstOf(names(value), nameFault);
    default:
      return undefined;
  }
}

function typeFault(type: string): string | undefined {
  return ALL_TYPES.includes(type) ? undefined : `must be one of ${ALL_TYPES.join(', ')}`;
}

function formatFault(format: string): string | undefined {
  if (KNOWN_FORMATS.includes(format)) return undefined;
  const near = nearest(format, KNOWN_FORMATS);
  const instead = near === undefined ? `enforced are ${KNOWN_FORMATS.join(', ')}` : `did you mean ${near}?`;
  return `is not a format that is enforced here; ${instead}`;
}

function nameFault(name: string): string | undefined {
  if (RESERVED_NAMES.has(name)) return `must not have ${name}: the name is reserved for the gateway`;
  return textFault(name) && 'must not have names with control, bidirectional or invisible characters';
}

function names(value: Json): readonly string[] {
  if (isObject(value)) return Object.keys(value);
  return Array.isArray(value) ? (value as readonly Json[]).filter((item) => typeof item === 'string') : [];
}

function firstOf(list: readonly string[], fault: (item: string) => string | undefined): string | undefined {
  for (const item of list) {
    const message = fault(item);
    if (message !== undefined) return message;
  }
  return undefined;
}
