/**
 * Discriminators of OpenAPI: the value of one property tells which schema of a choice applies. JSON
 * Schema has no such keyword, so each branch says its values itself.
 */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { listed } from './operations.ts';
import { type Documents, Inexpressible, type Place, target } from './references.ts';

/** Schemas between one and its base, at most. */
const MAX_BASES = 32;
/** Names that the branches of a choice have together, above which each is closed on its own. */
const MOST_NAMES = 500;
const SCHEMAS = '#/components/schemas/';

interface Discriminator {
  readonly property: string;
  /** The values that the document maps, by the key of the schema that they name. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** The discriminator of a choice: its own, else that of the base of all its branches. */
export function discriminatorOf(
  documents: Documents,
  { file, value: source }: Place & { readonly value: JsonObject },
  branches: readonly Json[],
): Discriminator | undefined {
  const own = source['discriminator'];
  if (own !== undefined) return readDiscriminator(documents, { file, value: own });
  const bases = branches.map((branch) => basesOf(documents, { file, value: branch }));
  const [first = []] = bases;
  const shared = first.find(({ key }) => bases.every((some) => some.some((base) => base.key === key)));
  return shared && readDiscriminator(documents, { file: shared.file, value: shared.value['discriminator'] ?? null });
}

/** References to the schemas that extend a base with a discriminator; none where nothing does. */
export function derivedFrom(documents: Documents, base: Place & { readonly key: string }): readonly string[] {
  const { file, value, key } = base;
  if (!isObject(value) || value['discriminator'] === undefined) return [];
  if (value['oneOf'] !== undefined || value['anyOf'] !== undefined) return [];
  if (readDiscriminator(documents, { file, value: value['discriminator'] ?? null }) === undefined) return [];
  const { mapping } = value['discriminator'] as JsonObject;
  const mapped = isObject(mapping) ? Object.values(mapping).map((name) => referenceTo(documents, name, file)) : [];
  const document = documents.files.get(file) ?? null;
  const schemas = isObject(document) && isObject(document['components']) ? document['components']['schemas'] : {};
  const extending = Object.entries(isObject(schemas) ? schemas : {})
    .filter(
      ([, schema]) =>
        !isWrapper(schema) && basesOf(documents, { file, value: schema }).some((other) => other.key === key),
    )
    .map(([name]) => SCHEMAS + escaped(name));
  const all = [...mapped, ...extending].filter((reference) => reference !== undefined);
  const byKey = new Map(all.map((reference) => [keyOf(documents, reference, file), reference]));
  byKey.delete(key);
  byKey.delete(undefined);
  return [...byKey.values()];
}

/**
 * The values of a branch: those of its own property, mapped ones before others, else the mapped
 * ones or the name of its schema. `branch`: as the document has it.
 */
export function valuesOf(
  documents: Documents,
  { property, values }: Discriminator,
  { file, value: branch }: Place,
  read: readonly JsonObject[],
): readonly Json[] {
  const reference = isObject(branch) ? branch['$ref'] : undefined;
  const key = reference === undefined ? undefined : keyOf(documents, reference, file);
  const name = key
    ?.split('/')
    .at(-1)
    ?.replace(/\.(?:json|ya?ml)#?$/, '');
  const mapped = (key === undefined ? undefined : values.get(key)) ?? [];
  const rules = read
    .map(({ properties }) => (isObject(properties) ? properties[property] : undefined))
    .filter(isObject);
  const isNumber = rules.some(({ type }) => type === 'integer' || type === 'number');
  const typed = mapped.map((text): Json => (isNumber && text.trim() !== '' ? Number(text) : text));
  const own = rules.map((rule) => ('const' in rule ? [rule['const'] ?? null] : listed(rule['enum'])));
  const stated = own.find((list) => list.length > 0);
  if (stated === undefined) return typed.length > 0 || name === undefined ? typed : [unescaped(name)];
  const both = stated.filter((value) => typed.includes(value));
  return both.length > 0 ? both : stated;
}

/**
 * Branches of which at most one fits: each needs its values, and refuses the members that only
 * others have. `common`: the members that stand beside the choice.
 */
export function exclusive(
  property: string,
  branches: readonly {
    readonly schema: JsonObject;
    readonly values: readonly Json[];
    readonly names: ReadonlySet<string>;
  }[],
  common: ReadonlySet<string>,
  isOpen: (schema: JsonObject) => boolean,
): readonly JsonObject[] {
  const all = new Set(branches.flatMap(({ names }) => [...names]));
  // Each naming the members of all others would be too long.
  const isCrowded = branches.length * all.size > MOST_NAMES;
  const named = (list: readonly string[], rule: boolean): JsonObject =>
    Object.fromEntries(list.map((name) => [name, rule]));
  return branches.map(({ schema, values, names }) => {
    const { properties: own, required } = schema;
    const properties = isObject(own) ? own : {};
    if (schema['type'] !== undefined && ![schema['type']].flat().includes('object')) return schema;
    const {
      enum: _enum,
      const: _const,
      examples: _examples,
      default: _default,
      ...rule
    } = isObject(properties[property]) ? properties[property] : {};
    const [first = null] = values;
    const foreign = [...all].filter((name) => !names.has(name) && !common.has(name) && name !== property);
    const rules = isOpen(schema) ? {} : isCrowded ? named([...names, ...common], true) : named(foreign, false);
    const needed = [...new Set([...listed(required), property])];
    return {
      type: 'object',
      ...schema,
      properties: {
        ...rules,
        ...properties,
        ...(values.length === 0
          ? {}
          : { [property]: { ...rule, ...(values.length === 1 ? { const: first } : { enum: values }) } }),
      },
      ...(isCrowded && !isOpen(schema) ? { additionalProperties: false } : {}),
      ...(values.length === 0 ? {} : { required: needed }),
    };
  });
}

/** Whether a schema is another one with a description or `nullable`, as 3.0 writes it. */
function isWrapper(schema: Json): boolean {
  return isObject(schema) && listed(schema['allOf']).length === 1 && schema['properties'] === undefined;
}

function readDiscriminator(documents: Documents, { file, value }: Place): Discriminator | undefined {
  if (!isObject(value) || typeof value['propertyName'] !== 'string') return undefined;
  const values = new Map<string, string[]>();
  for (const [text, name] of Object.entries(isObject(value['mapping']) ? value['mapping'] : {})) {
    const reference = referenceTo(documents, name, file);
    const key = reference === undefined ? undefined : keyOf(documents, reference, file);
    if (key !== undefined) values.set(key, [...(values.get(key) ?? []), text]);
  }
  return { property: value['propertyName'], values };
}

/** A mapping names a schema of the document, or has a reference. */
function referenceTo(documents: Documents, name: Json, file: string): string | undefined {
  if (typeof name !== 'string') return undefined;
  const reference = SCHEMAS + escaped(name);
  return keyOf(documents, reference, file) === undefined ? name : reference;
}

/** The schemas with a discriminator that a schema extends. */
function basesOf(
  documents: Documents,
  { file, value }: Place,
  hops = 0,
): readonly (Place & { readonly key: string; readonly value: JsonObject })[] {
  if (!isObject(value) || hops > MAX_BASES) return [];
  const own = value['$ref'] === undefined ? [] : [value];
  const parts = [...own, ...listed(value['allOf']).filter((part) => isObject(part) && part['$ref'] !== undefined)];
  return parts.filter(isObject).flatMap((part) => {
    const place = found(documents, part['$ref'] ?? null, file);
    if (place === undefined || !isObject(place.value)) return [];
    const base = { ...place, value: place.value };
    const isBase = part !== value && base.value['discriminator'] !== undefined;
    return [...(isBase ? [base] : []), ...basesOf(documents, base, hops + 1)];
  });
}

function keyOf(documents: Documents, reference: Json, file: string): string | undefined {
  return found(documents, reference, file)?.key;
}

function found(documents: Documents, reference: Json, file: string): ReturnType<typeof target> | undefined {
  try {
    return target(documents, reference, file);
  } catch (error) {
    if (error instanceof Inexpressible) return undefined;
    throw error;
  }
}

function escaped(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}

function unescaped(name: string): string {
  return decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
}
