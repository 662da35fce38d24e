/**
 * Reads the schemas of a document for inputs, references followed. What the gateway cannot enforce
 * is left out where an input can do without it, so that it takes fewer inputs than the document
 * says, never more; else the whole schema is refused.
 */

import { FORBIDDEN_NAMES, isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { IN_PLACE, RESERVED_NAMES, subschemas } from '../../src/resources/schemas/keywords.ts';
import { textFault } from '../../src/resources/schemas/schema-check.ts';
import { inDialect } from './dialect.ts';
import { derivedFrom, discriminatorOf, exclusive, valuesOf } from './discriminator.ts';
import { type Documents, Inexpressible, type Place, type Target, target } from './references.ts';
import { LONGEST_NOTE, plainText } from './texts.ts';

/** What an input can do without and was left out: where, and why. */
export interface LeftOut {
  /** Names from the input down, with dots; `[]` for the items of a list. */
  readonly path: string;
  readonly reason: string;
}

interface ReadSchema {
  readonly schema: JsonObject;
  readonly leftOut: readonly LeftOut[];
  /** Schemas in it, itself too. */
  readonly size: number;
}

/** Most schemas in one input, references followed: models get lost in fewer. */
const MAX_SCHEMAS = 2_000;
/** How often a schema may stand within itself: deeper ones are left out. */
const MAX_NESTED = 2;
/** Schemas that are looked at for one input: circles of many are left out everywhere otherwise. */
const MAX_LOOKS = 10 * MAX_SCHEMAS;
/** Deepest nesting of schemas: each takes up to two of the 64 levels of a configuration. */
const MAX_DEPTH = 26;
const ANNOTATIONS: ReadonlySet<string> = new Set([
  '$ref',
  'description',
  'summary',
  'title',
  'example',
  'examples',
  'default',
]);

const CHOICES: readonly string[] = ['allOf', 'anyOf', 'oneOf'];

export interface SchemaReader {
  /** @throws Inexpressible */
  read(place: Place): ReadSchema;
  /** The names of the schemas that references led to, which are the same object at each of them. */
  readonly names: ReadonlyMap<JsonObject, string>;
}

/** `siblings`: whether keywords beside a reference count, as from OpenAPI 3.1 on. */
export function schemaReader(documents: Documents, { siblings }: { readonly siblings: boolean }): SchemaReader {
  const names = new Map<JsonObject, string>();
  const known = new Map<string, ReadSchema>();
  /** The schemas that extend a base with a discriminator, by its key. */
  const extended = new Map<string, readonly string[]>();
  /** References that are being followed, outermost first. */
  const open: string[] = [];
  /** Those of them that were met again: what is read meanwhile depends on where it stands. */
  const met = new Set<string>();

  let looks = 0;
  /** Whether a bound was met, which lies elsewhere for the same schema in another place. */
  let isBounded = false;

  function readWhole(place: Place): ReadSchema {
    looks = 0;
    isBounded = false;
    return read(place, 0);
  }

  function read({ file, value }: Place, depth: number, isBase = false): ReadSchema {
    looks += 1;
    if (looks > MAX_LOOKS || depth > MAX_DEPTH) {
      isBounded = true;
      throw new Inexpressible(
        depth > MAX_DEPTH
          ? `is nested deeper than ${MAX_DEPTH} schemas: only what is optional can be left out`
          : 'is one of many schemas that refer to each other: leave out what agents do not need',
      );
    }
    if (value === true) return { schema: {}, leftOut: [], size: 1 };
    if (!isObject(value))
      throw new Inexpressible('has a schema that is no object: write one, such as { type: string }');
    const reference = value['$ref'];
    if (reference === undefined) return readObject(file, value, depth);
    const more = Object.keys(value).some((keyword) => !ANNOTATIONS.has(keyword) && !keyword.startsWith('x-'));
    if (siblings && more) {
      const { $ref: _reference, allOf, ...rest } = value;
      const parts = [{ $ref: reference }, ...(Array.isArray(allOf) ? (allOf as readonly Json[]) : [])];
      return readObject(file, { ...rest, allOf: parts }, depth);
    }
    const read = described(readReference(reference, file, depth, isBase), value['description']);
    return value['nullable'] === true ? orNull(read) : read;
  }

  /** `isBase`: where a schema extends the target, which is then no choice of all that do. */
  function readReference(reference: Json, file: string, depth: number, isBase = false): ReadSchema {
    const place = target(documents, reference, file);
    const derived = isBase ? [] : derivedOf(place);
    const key = derived.length === 0 ? place.key : `${place.key} as choice`;
    const before = known.get(key);
    if (before !== undefined) return before;
    if (open.includes(key)) met.add(key);
    if (open.filter((other) => other === key).length >= MAX_NESTED)
      throw new Inexpressible('is recursive: only what is optional can be left out');
    open.push(key);
    try {
      const made = derived.length === 0 ? read(place, depth) : readChoice(place, derived, depth);
      names.set(made.schema, place.key.split('/').at(-1) ?? '');
      if (met.size === 0 && !isBounded) known.set(key, made);
      return made;
    } finally {
      open.pop();
      if (!open.includes(key)) met.delete(key);
    }
  }

  function derivedOf(place: Target): readonly string[] {
    const before = extended.get(place.key);
    const derived = before ?? derivedFrom(documents, place);
    if (before === undefined) extended.set(place.key, derived);
    return derived;
  }

  function readChoice({ file, value }: Place, derived: readonly string[], depth: number): ReadSchema {
    const { discriminator = null, description = '', nullable = false } = isObject(value) ? value : {};
    const oneOf = derived.map((reference) => ({ $ref: reference }));
    return readObject(file, { oneOf, discriminator, description, nullable }, depth);
  }

  function readObject(file: string, source: JsonObject, depth: number): ReadSchema {
    const only = soleBranch(source);
    if (source['nullable'] === true && (only !== undefined || CHOICES.some((keyword) => keyword in source))) {
      const { nullable: _nullable, ...rest } = source;
      return orNull(readObject(file, rest, depth));
    }
    if (only !== undefined) return described(read({ file, value: only }, depth + 1), source['description']);
    const made: Record<string, Json> = { ...inDialect(source) };
    const leftOut: LeftOut[] = [];
    let size = 1;

    const inner = (value: Json, path: string, isBase = false): JsonObject => {
      const part = read({ file, value }, depth + 1, isBase);
      size += part.size;
      if (size > MAX_SCHEMAS)
        throw new Inexpressible(
          `has more than ${MAX_SCHEMAS} schemas, references followed: leave out what agents do not need`,
        );
      for (const { path: below, reason } of part.leftOut) leftOut.push({ path: joined(path, below), reason });
      return part.schema;
    };
    /** For schemas of which fewer values would make more of the whole. */
    const innerWhole = (value: Json, keyword: string): JsonObject => {
      const before = leftOut.length;
      const schema = inner(value, keyword);
      const [lost] = leftOut.slice(before);
      if (lost !== undefined) throw new Inexpressible(`${lost.reason} (in ${lost.path})`);
      return schema;
    };
    /** The branches that can be read, each with that of the document. */
    const branchesOf = (list: readonly Json[], keyword: string): readonly (readonly [JsonObject, Json])[] => {
      const faults: LeftOut[] = [];
      const kept = list.flatMap((branch, index): (readonly [JsonObject, Json])[] => {
        try {
          return branch === false ? [] : [[inner(branch, ''), branch]];
        } catch (error) {
          if (!(error instanceof Inexpressible)) throw error;
          faults.push({ path: `${keyword}[${index}]`, reason: error.message });
          return [];
        }
      });
      if (kept.length === 0) throw new Inexpressible(faults[0]?.reason ?? 'allows nothing: list a schema there');
      leftOut.push(...faults);
      // It may be one of the branch that is left out.
      if (faults.length > 0) delete made['default'];
      return kept;
    };

    // A choice last: its branches must know what stands beside them.
    for (const keyword of Object.keys(made).toSorted((a, b) => CHOICES.indexOf(a) - CHOICES.indexOf(b))) {
      const value = source[keyword] ?? null;
      switch (keyword) {
        case 'properties':
          Object.assign(made, readProperties(value, source, inner, leftOut, file));
          break;
        case 'additionalProperties':
          try {
            if (isObject(value)) made[keyword] = Object.keys(value).length === 0 ? true : inner(value, '*');
          } catch (error) {
            if (!(error instanceof Inexpressible)) throw error;
            leftOut.push({ path: '*', reason: error.message });
            made[keyword] = false;
          }
          break;
        case 'unevaluatedProperties':
        case 'unevaluatedItems':
          // Objects are closed anyway; beside composition it is refused.
          if (value === false && IN_PLACE.some((name) => name in source)) delete made[keyword];
          else if (isObject(value)) made[keyword] = inner(value, '*');
          break;
        case 'items':
          if (Array.isArray(value)) throw new Inexpressible('has a list of schemas as items: write prefixItems');
          if (value !== false) made[keyword] = inner(value, '[]');
          break;
        case 'allOf':
          made[keyword] = listOf(value, keyword).map((part) => inner(part, '', true));
          break;
        case 'prefixItems':
          made[keyword] = listOf(value, keyword).map((part) => inner(part, '[]'));
          break;
        case 'anyOf':
        case 'oneOf': {
          const list = listOf(value, keyword);
          const discriminator = discriminatorOf(documents, { file, value: source }, list);
          if (discriminator !== undefined) {
            const read = branchesOf(list, keyword).map(([schema, branch]) => {
              const parts = partsOf(schema);
              const values = valuesOf(documents, discriminator, { file, value: branch }, parts);
              return { schema, values, names: namesIn(parts) };
            });
            const { [keyword]: _choice, ...beside } = made;
            const common = namesIn(partsOf(beside));
            const values = read.flatMap((branch) => branch.values.map((value) => JSON.stringify(value)));
            // A value of several branches tells none of them.
            const isShared = new Set(values).size < values.length && source['anyOf'] === undefined;
            if (isShared) delete made[keyword];
            made[isShared ? 'anyOf' : keyword] = exclusive(discriminator.property, read, common, (schema) =>
              partsOf(schema).some(isOpen),
            );
            // Generators close a base for the members of its extensions, which are closed anyway.
            if (made['additionalProperties'] === false) delete made['additionalProperties'];
          } else if (keyword === 'anyOf') made[keyword] = branchesOf(list, keyword).map(([schema]) => schema);
          else made[keyword] = list.map((part) => innerWhole(part, keyword));
          break;
        }
        case 'patternProperties':
        case 'dependentSchemas':
          made[keyword] = Object.fromEntries(
            Object.entries(isObject(value) ? value : {}).map(([name, part]) => [name, inner(part, name)]),
          );
          break;
        case 'not':
        case 'if':
          if (typeof value !== 'boolean') made[keyword] = innerWhole(value, keyword);
          break;
        case 'then':
        case 'else':
        case 'contains':
        case 'propertyNames':
          if (typeof value !== 'boolean') made[keyword] = inner(value, '');
          break;
      }
    }
    const schema = declareRequired(made, source);
    const needed = allOfParts(schema).flatMap(requiredNames);
    const lost = leftOut.find(({ path }) => needed.includes(path));
    if (lost !== undefined) throw new Inexpressible(`${lost.reason} (in the required ${JSON.stringify(lost.path)})`);
    return { schema, leftOut, size };
  }

  function readProperties(
    value: Json,
    source: JsonObject,
    inner: (value: Json, path: string) => JsonObject,
    leftOut: LeftOut[],
    file: string,
  ): JsonObject {
    const required = requiredNames(source);
    const properties: [string, Json][] = [];
    for (const [name, property] of Object.entries(isObject(value) ? value : {})) {
      if (isReadOnly(property, file)) continue;
      try {
        const fault = nameFault(name);
        if (fault !== undefined) throw new Inexpressible(fault);
        properties.push([name, property === false ? false : inner(property, name)]);
      } catch (error) {
        if (!(error instanceof Inexpressible)) throw error;
        if (required.includes(name))
          throw new Inexpressible(`${error.message} (in the required ${JSON.stringify(name)})`);
        leftOut.push({ path: name, reason: error.message });
      }
    }
    return { properties: Object.fromEntries(properties) };
  }

  /** Whether the server alone sets a value, as the schema, its target or a part of it says. */
  function isReadOnly(schema: Json, file: string, hops = 0): boolean {
    if (!isObject(schema) || hops > MAX_DEPTH) return false;
    if (schema['readOnly'] === true) return true;
    const { $ref: reference, allOf } = schema;
    if (Array.isArray(allOf) && (allOf as readonly Json[]).some((part) => isReadOnly(part, file, hops + 1)))
      return true;
    if (reference === undefined) return false;
    try {
      const place = target(documents, reference, file);
      return isReadOnly(place.value, place.file, hops + 1);
    } catch {
      // Reading it tells why.
      return false;
    }
  }

  return { read: readWhole, names };
}

/** Why the gateway takes no input with a property of this name; undefined where it does. */
export function nameFault(name: string): string | undefined {
  if (RESERVED_NAMES.has(name) || FORBIDDEN_NAMES.has(name))
    return `has the name ${name}, which no input may have: rename it`;
  return textFault(name) === undefined ? undefined : 'has a name with control or invisible characters: rename it';
}

/** The one branch of a schema that says nothing else: 3.0 describes references like that. */
function soleBranch(source: JsonObject): Json | undefined {
  const { allOf, ...rest } = source;
  if (!Array.isArray(allOf) || allOf.length !== 1) return undefined;
  const says = Object.keys(rest).some(
    (keyword) =>
      !ANNOTATIONS.has(keyword) && !keyword.startsWith('x-') && keyword !== 'nullable' && keyword !== 'deprecated',
  );
  return says ? undefined : (allOf[0] as Json);
}

/** A description beside a reference belongs to the place, not to the target. */
function described(read: ReadSchema, description: Json | undefined): ReadSchema {
  const text = typeof description === 'string' ? plainText(description, LONGEST_NOTE) : '';
  return text === '' || text === read.schema['description']
    ? read
    : { ...read, schema: { ...read.schema, description: text } };
}

/** The schema with null beside its values. */
function orNull(read: ReadSchema): ReadSchema {
  const { type, description, ...rest } = read.schema;
  if ((type === undefined && Object.keys(rest).length === 0) || [type].flat().includes('null')) return read;
  const isPlain =
    type !== undefined && ![...CHOICES, 'not', 'enum', 'const', '$ref'].some((keyword) => keyword in rest);
  const note = description === undefined ? {} : { description };
  const schema = isPlain
    ? { ...read.schema, type: [...([type].flat() as readonly Json[]), 'null'] }
    : { ...note, anyOf: [{ ...(type === undefined ? {} : { type }), ...rest }, { type: 'null' }] };
  return { ...read, schema, size: read.size + 2 };
}

function namesIn(parts: readonly JsonObject[]): ReadonlySet<string> {
  return new Set(parts.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : [])));
}

/** The gateway closes objects, so what is required must be declared, in one of their parts. */
function declareRequired(made: JsonObject, source: JsonObject): JsonObject {
  const read = isObject(made['properties']) ? made['properties'] : {};
  const all = isObject(source['properties']) ? source['properties'] : {};
  const { required: _required, ...rest } = made;
  // A member that was left out, because the server alone sets it, cannot be required.
  const own = requiredNames(source).filter((name) => Object.hasOwn(read, name) || !Object.hasOwn(all, name));
  const schema = 'required' in made && own.length > 0 ? { ...rest, required: own } : rest;
  const parts = partsOf(schema);
  const describes = parts.length === 1 ? 'required' in schema : parts.some((part) => 'properties' in part);
  if (!describes || parts.some(isOpen)) return schema;
  const declared = new Set(parts.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : [])));
  const missing = allOfParts(schema)
    .flatMap(requiredNames)
    .filter((name) => !declared.has(name));
  if (missing.length === 0) return schema;
  if (source['additionalProperties'] === false)
    throw new Inexpressible(`requires ${JSON.stringify(missing[0])}, which it does not allow: add it to properties`);
  return { ...schema, properties: { ...read, ...Object.fromEntries(missing.map((name) => [name, {}])) } };
}

/** The schema and all others for the same value. */
function partsOf(schema: JsonObject): readonly JsonObject[] {
  const parts = subschemas(schema).filter(({ applies, keyword }) => applies === 'same' || keyword === 'if');
  return [schema, ...parts.flatMap((part) => (isObject(part.schema) ? partsOf(part.schema) : []))];
}

/** Those of them that hold for each value. */
function allOfParts(schema: JsonObject): readonly JsonObject[] {
  const { allOf } = schema;
  const parts = Array.isArray(allOf) ? (allOf as readonly Json[]).filter((part) => isObject(part)) : [];
  return [schema, ...parts.flatMap(allOfParts)];
}

function isOpen({ additionalProperties = false, patternProperties }: JsonObject): boolean {
  return additionalProperties !== false || patternProperties !== undefined;
}

function requiredNames({ required }: JsonObject): readonly string[] {
  if (!Array.isArray(required)) return [];
  return [...new Set((required as readonly Json[]).filter((name) => typeof name === 'string'))];
}

function listOf(value: Json, keyword: string): readonly Json[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new Inexpressible(`has an ${keyword} that is no list: list schemas there`);
  return value as readonly Json[];
}

function joined(path: string, below: string): string {
  return [path, below].filter((part) => part !== '').join('.');
}
