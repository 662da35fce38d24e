/**
 * Resources in the form that the APIs of models take as tools, and the members of their input
 * that MCP clients repeat in a header. One name with other characters, or a combinator on the top
 * level, makes these APIs refuse the tools of all servers of a host.
 */

import { createHash } from 'node:crypto';
import { FORBIDDEN_NAMES, isObject, type Json, type JsonObject } from '../json/json.ts';
import { memberPath } from '../problems/problem.ts';
import {
  IN_PLACE,
  MIRROR_KEYWORD,
  type ResourceFault,
  resolveReference,
  sameValue,
  subschemas,
  withSubschemas,
} from './schemas/keywords.ts';

/** Names that common APIs take for a tool, and for an argument. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ARGUMENT_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;
const LONGEST = 64;
const DIGEST_LENGTH = 6;
/** Words for signs at the end of filters (`price<`), so that their safe names differ. */
const WORDS: Readonly<Record<string, string>> = { '<': '_lt', '>': '_gt', '=': '_eq' };
/** Keywords that these APIs refuse on the top level. */
const COMBINATORS: ReadonlySet<string> = new Set([...IN_PLACE, 'not', 'enum', 'const']);
/** Longest text of left out rules within a description, characters. */
const LONGEST_RULES = 600;

/** The names of tools by id: legal ids stay, and other ids get safe names. */
export function toolNames(ids: readonly string[]): ReadonlyMap<string, string> {
  return safeNames(ids, TOOL_NAME);
}

/** The input of a tool. */
interface ToolInput {
  readonly schema: JsonObject;
  /** Gives arguments their true names; undefined where none differs. */
  readonly read: ((input: JsonObject) => JsonObject) | undefined;
  /** The safe names by the true ones, where they differ. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Combinators on the top level of the resource's schema. */
  readonly combinators: readonly string[];
}

/**
 * The input of a tool: safe names, and no combinators on top, whose properties move beside the
 * others. The validator has the original schema. A schema that `staysWhole` keeps its combinators.
 */
export function toolInput(root: JsonObject): ToolInput {
  const names = safeNames([...propertyNames(root)], ARGUMENT_NAME);
  const renamed = new Map([...names].filter(([name, safe]) => name !== safe));
  const combinators = Object.keys(root).filter((keyword) => COMBINATORS.has(keyword));
  const schema = renamed.size === 0 ? root : withNames(root, renamed);
  return {
    schema: combinators.length === 0 || staysWhole(root) ? schema : flattened(schema),
    read: renamed.size === 0 ? undefined : reader(root, renamed),
    renamed,
    combinators,
  };
}

/** Whether combinators stay: the operator names the dialect, or a reference leads into one. */
export function staysWhole(schema: JsonObject): boolean {
  return '$schema' in schema || /"#\/(?:allOf|anyOf|oneOf|not|if|then|else)\//.test(JSON.stringify(schema));
}

/** Legal names stay. Others of one safe form get a digest, which depends on the name alone. */
function safeNames(names: readonly string[], legal: RegExp): ReadonlyMap<string, string> {
  const times = new Map<string, number>();
  const wanted = names.map((name) => [name, legal.test(name) ? name : cleaned(name, legal)] as const);
  for (const [, safe] of wanted) times.set(safe, (times.get(safe) ?? 0) + 1);
  return new Map(
    wanted.map(([name, safe]) => {
      const isFree = times.get(safe) === 1 && safe.length <= LONGEST && safe !== '' && !FORBIDDEN_NAMES.has(safe);
      return [name, isFree || legal.test(name) ? safe : digested(name, safe)];
    }),
  );
}

function cleaned(name: string, legal: RegExp): string {
  return [...name]
    .map((sign) => (legal.test(sign) ? sign : (WORDS[sign] ?? '_')))
    .join('')
    .replaceAll(/_{2,}/g, '_')
    .replaceAll(/^_|_$/g, '');
}

function digested(name: string, safe: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_LENGTH);
  return `${safe.slice(0, LONGEST - DIGEST_LENGTH - 1) || 'argument'}_${digest}`;
}

function propertyNames(schema: Json, found = new Set<string>()): ReadonlySet<string> {
  if (!isObject(schema)) return found;
  for (const { keyword, steps, schema: inner } of subschemas(schema)) {
    if (keyword === 'properties') found.add(String(steps[1]));
    propertyNames(inner, found);
  }
  return found;
}

/** The schema with other names; the title of a property has its true one. */
function withNames(root: JsonObject, renamed: ReadonlyMap<string, string>): JsonObject {
  const safe = (name: string): string => renamed.get(name) ?? name;
  const listed = (names: Json): Json =>
    Array.isArray(names) ? names.map((name: Json) => (typeof name === 'string' ? safe(name) : name)) : names;
  const keyed = (members: Json, change: (member: Json, name: string) => Json): Json =>
    isObject(members)
      ? Object.fromEntries(Object.entries(members).map(([name, member]) => [safe(name), change(member, name)]))
      : members;
  const titled = (member: Json, name: string): Json =>
    renamed.has(name) && isObject(member) ? { title: name, ...member } : member;
  const inside = (schema: JsonObject): JsonObject => {
    const made = withSubschemas(schema, ({ schema: part }) => (isObject(part) ? inside(part) : part));
    const { propertyNames: rule, ...rest } = made;
    const entries = Object.entries(rest).map(([keyword, value]): [string, Json] => {
      if (keyword === 'properties') return [keyword, keyed(value, titled)];
      if (keyword === 'required') return [keyword, listed(value)];
      if (keyword === 'dependentRequired') return [keyword, keyed(value, listed)];
      if (keyword === 'dependentSchemas') return [keyword, keyed(value, (member) => member)];
      return keyword === '$ref' && typeof value === 'string' ? [keyword, pointer(value, safe)] : [keyword, value];
    });
    // `propertyNames` is about the true names, so it does not stand beside renamed properties.
    const isOther = isObject(made['properties']) && Object.keys(made['properties']).some((name) => renamed.has(name));
    return { ...Object.fromEntries(entries), ...(rule === undefined || isOther ? {} : { propertyNames: rule }) };
  };
  return inside(root);
}

function pointer(reference: string, safe: (name: string) => string): string {
  return reference.replaceAll(/(?<=\/(?:properties|dependentSchemas)\/)[^/]+/g, (token) =>
    safe(token.replaceAll('~1', '/').replaceAll('~0', '~')),
  );
}

/** Renames where the schema has the true name, so that free keys of open objects stay. */
function reader(root: JsonObject, renamed: ReadonlyMap<string, string>): (input: JsonObject) => JsonObject {
  const trueNames = new Map([...renamed].map(([name, safe]) => [safe, name]));
  const read = (value: Json, schemas: readonly Json[]): Json => {
    if (value === null || typeof value !== 'object') return value;
    const parts = schemas.filter((schema) => isObject(schema)).flatMap((schema) => sameValue(schema, root));
    if (!isObject(value))
      return (value as readonly Json[]).map((item, index) =>
        read(
          item,
          parts.map((part) => at(part['prefixItems'], index) ?? part['items'] ?? null),
        ),
      );
    return members(value, parts);
  };
  const members = (value: JsonObject, parts: readonly JsonObject[]): JsonObject =>
    Object.fromEntries(
      Object.entries(value).map(([key, member]) => {
        const meant = trueNames.get(key);
        const isMeant = meant !== undefined && !Object.hasOwn(value, meant) && parts.some((part) => names(part, meant));
        const name = isMeant ? meant : key;
        const inner = parts.flatMap((part) => [own(part, name) ?? part['additionalProperties'] ?? null]);
        return [name, read(member, inner)];
      }),
    );
  return (input) => members(input, sameValue(root, root));
}

/** Whether a schema has the name in `properties` or `required`, where `withNames` renames it. */
function names(schema: JsonObject, name: string): boolean {
  const { required } = schema;
  return own(schema, name) !== undefined || (Array.isArray(required) && required.includes(name));
}

function own({ properties }: JsonObject, name: string): Json | undefined {
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function at(list: Json | undefined, index: number): Json | undefined {
  return Array.isArray(list) ? (list as readonly Json[])[index] : undefined;
}

/** Moves the properties of combinators beside the others, and their rules to the description. */
function flattened(root: JsonObject): JsonObject {
  const entries = Object.entries(root);
  const kept = Object.fromEntries(entries.filter(([keyword]) => !COMBINATORS.has(keyword)));
  const rules = JSON.stringify(Object.fromEntries(entries.filter(([keyword]) => COMBINATORS.has(keyword))));
  const [, ...parts] = applied(root, root);
  const properties = new Map<string, Json>(Object.entries(isObject(kept['properties']) ? kept['properties'] : {}));
  const told = new Map<string, Map<string, Json>>();
  for (const part of parts)
    for (const [name, schema] of Object.entries(isObject(part['properties']) ? part['properties'] : {})) {
      if (!told.has(name)) told.set(name, new Map());
      if (schema !== true) told.get(name)?.set(JSON.stringify(schema), schema);
    }
  for (const [name, schemas] of told) {
    const [first = true, ...more] = schemas.values();
    if ((properties.get(name) ?? true) === true)
      properties.set(name, more.length === 0 ? first : { anyOf: [first, ...more] });
  }
  const note = `Must also fit ${rules}`;
  const description = [kept['description'], ...(note.length > LONGEST_RULES ? [] : [note])];
  const text = description.filter((part) => typeof part === 'string').join('\n');
  return {
    ...kept,
    ...(text === '' ? {} : { description: text }),
    ...(properties.size === 0 ? {} : { properties: Object.fromEntries(properties) }),
  };
}

/** The schemas that describe the same value, without conditions. */
function applied(schema: JsonObject, root: JsonObject): readonly JsonObject[] {
  const inner = subschemas(schema).filter(({ applies }) => applies === 'same');
  const target = schema['$ref'] === undefined ? undefined : resolveReference(root, schema['$ref']);
  const parts = [...inner.map((part) => part.schema), target];
  return [schema, ...parts.flatMap((part) => (part !== undefined && isObject(part) ? applied(part, root) : []))];
}

/** An annotated argument (2026-07-28, "Custom Headers from Tool Parameters"). */
export interface MirroredParameter {
  /** Lower-case name of the whole header, `mcp-param-…`. */
  readonly header: string;
  /** Property names from the input down to the argument. */
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

/** RFC 9110 5.6.2: one or more token characters. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<Json | undefined> = new Set<Json | undefined>(['string', 'integer', 'boolean']);

/** The annotated arguments of a checked input schema. */
export function mirroredParameters(schema: JsonObject): readonly MirroredParameter[] {
  const found: MirroredParameter[] = [];
  const walk = (node: JsonObject, path: readonly string[]): void => {
    const { properties } = node;
    if (!isObject(properties)) return;
    for (const [name, property] of Object.entries(properties)) {
      if (!isObject(property)) continue;
      const here = [...path, name];
      const mirror = property[MIRROR_KEYWORD];
      if (typeof mirror === 'string')
        found.push({
          header: `mcp-param-${mirror.toLowerCase()}`,
          path: here,
          type: property['type'] as MirroredParameter['type'],
        });
      walk(property, here);
    }
  };
  walk(schema, []);
  return found;
}

/** The faults of annotations: clients drop a tool whose annotations break the specification. */
export function mirrorFaults(root: JsonObject, at: string): readonly ResourceFault[] {
  const faults: ResourceFault[] = [];
  const names = new Set<string>();
  const walk = (schema: JsonObject, path: string, reachable: boolean): void => {
    const mirror = schema[MIRROR_KEYWORD];
    if (mirror !== undefined) {
      const message = faultOf(schema, mirror, reachable, names);
      if (message !== undefined) faults.push({ path: memberPath(path, MIRROR_KEYWORD), message });
      if (typeof mirror === 'string') names.add(mirror.toLowerCase());
    }
    for (const inner of subschemas(schema))
      if (isObject(inner.schema))
        walk(
          inner.schema,
          inner.steps.reduce<string>(memberPath, path),
          (reachable || schema === root) && inner.keyword === 'properties',
        );
  };
  walk(root, at, false);
  return faults;
}

function faultOf(schema: JsonObject, mirror: Json, reachable: boolean, names: ReadonlySet<string>): string | undefined {
  if (typeof mirror !== 'string' || !TOKEN.test(mirror)) return 'must be a header name: letters, digits and hyphens';
  if (/^mcp-param-/i.test(mirror)) return 'must be named without Mcp-Param-, which clients put in front';
  if (!reachable) return 'must stand in a property that is reached from the input through properties alone';
  if (!TYPES.has(schema['type'])) return 'is for properties of type string, integer or boolean';
  return names.has(mirror.toLowerCase()) ? 'must differ from every other one in this schema' : undefined;
}
