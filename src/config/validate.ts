/** Checks the expanded document against the published schema. */

import type { ErrorObject } from 'ajv/dist/2020.js';
import { nearest } from '../problems/nearest.ts';
import { memberPath, type ProblemList } from '../problems/problem.ts';
import { matchesSchema } from './compiled.ts';
import type { ConfigDocument } from './document/document.ts';
import { isMapping, type SchemaNode, type Step, schemaAt, toldName } from './document/member.ts';

/** Every violation becomes a problem that names what would be right, never the configured value. */
export function validateDocument(document: unknown, problems: ProblemList): document is ConfigDocument {
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    problems.add('document', 'must be a mapping of keys to values');
    return false;
  }
  if (matchesSchema(document)) return true;
  const errors = (matchesSchema.errors ?? []).map((error) => violationOf(error, document));
  const causes = causesIn(errors);
  for (const [path, names] of causes.meant) for (const name of names) problems.doubt(memberPath(path, name));
  for (const error of errors) {
    if (isConsequence(error, causes)) continue;
    const { path, message } = explain(error, causes);
    problems.add(path, message);
  }
  return false;
}

/** A violation of the schema, and its place: for a missing or unknown member its mapping. */
interface Violation {
  readonly error: ErrorObject;
  readonly keyword: string;
  readonly data: unknown;
  readonly parent: ParentSchema;
  readonly steps: readonly Step[];
  readonly path: string;
  /** The path of the mapping or list that it is in. */
  readonly above: string;
}

interface ParentSchema extends SchemaNode {
  readonly propertyNames?: SchemaNode;
  readonly if?: { readonly properties?: Readonly<Record<string, unknown>>; readonly required?: readonly string[] };
}

/** A JSON pointer names a list index and a key alike; only the document tells which it is. */
function violationOf(error: ErrorObject, document: object): Violation {
  const { keyword, data } = error;
  const parent = (error.parentSchema ?? {}) as ParentSchema;
  const steps: Step[] = [];
  let [above, path] = ['', ''];
  let value: unknown = document;
  for (const token of error.instancePath.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const isList = Array.isArray(value);
    value = (value as Readonly<Record<string, unknown>>)[name];
    steps.push(isList ? Number(name) : name);
    above = path;
    path = memberPath(path, isList ? Number(name) : toldName(name, value === null));
  }
  return { error, keyword, data, parent, steps, path, above };
}

/** Mistakes for which the schema refuses other members too, by the path of their mapping. */
interface Causes {
  /** Known keys that unknown ones were meant to be. */
  readonly meant: ReadonlyMap<string, ReadonlySet<string>>;
  /** The key that decides which others are used, with its value; undefined if it is refused. */
  readonly deciding: ReadonlyMap<string, string | undefined>;
}

function causesIn(errors: readonly Violation[]): Causes {
  const meant = new Map<string, Set<string>>();
  const deciding = new Map<string, string | undefined>();
  const refused = new Set(errors.map(({ path }) => path));
  for (const { error, keyword, path, parent, data } of errors) {
    if (keyword === 'additionalProperties') {
      const unknown = String(error.params['additionalProperty']);
      const name = meantBy(unknown, Object.keys(parent.properties ?? {}));
      if (name !== undefined) meant.set(path, (meant.get(path) ?? new Set()).add(name));
    }
    // A condition inside another one comes first, and its words are the nearer ones.
    if (keyword !== 'if' || deciding.has(path)) continue;
    const { properties, required } = parent.if ?? {};
    for (const name of Object.keys(properties ?? {})) {
      const value = (data as Readonly<Record<string, unknown>>)[name];
      const isKnown = value !== undefined && !refused.has(memberPath(path, name));
      deciding.set(path, isKnown ? `with ${name}: ${value}` : undefined);
    }
    for (const name of required ?? []) deciding.set(path, `with ${name}`);
  }
  return { meant, deciding };
}

/** Whether a violation goes with its cause, or only serves the schema to express another one. */
function isConsequence(violation: Violation, { meant, deciding }: Causes): boolean {
  const { error, keyword, path } = violation;
  if (keyword === 'if' || error.propertyName !== undefined) return true;
  const owner = ownerOf(violation);
  if (owner !== undefined && deciding.has(owner) && deciding.get(owner) === undefined) return true;
  // A text or a list has no members to choose among, and its type is refused.
  if (keyword === 'oneOf') return meant.has(path) || !isMapping(error.data);
  if (keyword !== 'required') return false;
  // The branches of `oneOf` only list what is allowed; the `oneOf` error itself is clearer.
  return error.schemaPath.includes('/oneOf/') || meant.get(path)?.has(String(error.params['missingProperty'])) === true;
}

/** The mapping whose member decides about this violation; undefined: none does. */
function ownerOf({ error, keyword, path, above }: Violation): string | undefined {
  if (!/\/(?:then|else)\//.test(error.schemaPath)) return undefined;
  return keyword === 'required' ? path : above;
}

function explain(violation: Violation, { deciding }: Causes): { path: string; message: string } {
  const { error, keyword, data, parent, steps, path } = violation;
  const { params } = error;
  const here = path === '' ? 'document' : path;
  const description = parent.description ?? 'something else';
  switch (keyword) {
    case 'additionalProperties':
      return unknownKey(String(params['additionalProperty']), path, data, Object.keys(parent.properties ?? {}));
    case 'required': {
      const name = String(params['missingProperty']);
      const wanted = schemaAt([...steps, name])?.description;
      return { path: memberPath(path, name), message: wanted === undefined ? 'is missing' : `is missing: ${wanted}` };
    }
    case 'propertyNames': {
      const name = String(params['propertyName']);
      const isBare = (data as Readonly<Record<string, unknown>>)[name] === null;
      return {
        path: memberPath(path, toldName(name, isBare)),
        message: `must be named by ${parent.propertyNames?.description}`,
      };
    }
    case 'false schema':
      return { path: here, message: `is not used ${deciding.get(ownerOf(violation) ?? '') ?? 'here'}; remove it` };
    case 'type':
      return { path: here, message: wrongType(String(params['type']), data, parent) };
    default:
      return {
        path: here,
        message: `must be ${description}${range(parent)}${whatIsWrong(keyword, params, data, parent)}`,
      };
  }
}

function range({ minimum, maximum }: SchemaNode): string {
  return minimum === undefined || maximum === undefined ? '' : ` (${minimum} to ${maximum})`;
}

function whatIsWrong(
  keyword: string,
  params: ErrorObject['params'],
  data: unknown,
  { examples = [] }: SchemaNode,
): string {
  if (data === null) return '; it has no value';
  switch (keyword) {
    case 'enum': {
      const words = (params['allowedValues'] as readonly unknown[]).filter((word) => typeof word === 'string');
      const near = typeof data === 'string' ? nearest(data, words) : undefined;
      return near === undefined ? '' : `; did you mean ${near}?`;
    }
    case 'pattern': {
      const near = nearest(String(data), examples);
      return near === undefined ? '' : `; did you mean ${near}?`;
    }
    case 'oneOf':
      return params['passingSchemas'] === null ? '; none of them is here' : '; more than one of them is here';
    case 'uniqueItems':
      return `; [${params['j']}] and [${params['i']}] are the same`;
    case 'minItems':
    case 'minLength':
      return '; it is empty';
    case 'maxItems':
    case 'maxLength':
    case 'maxProperties':
      return `; at most ${Number(params['limit']).toLocaleString('en-US')}${keyword === 'maxLength' ? ' characters' : ''}`;
    default:
      return '';
  }
}

/** YAML 1.2 reads these as texts. */
const OLD_BOOLEANS: ReadonlySet<string> = new Set(['yes', 'no', 'on', 'off', 'y', 'n']);

/** A wrong type in the words of the file. YAML turns an unquoted 0x… or 0.01 into a number. */
function wrongType(type: string, data: unknown, parent: SchemaNode): string {
  const { description = 'another type' } = parent;
  const must = `must be ${description}`;
  if (data === null) return `${must}${range(parent)}; it has no value`;
  switch (type) {
    case 'integer':
      return `${must}${range(parent)}, a whole number without quotes`;
    case 'boolean': {
      const isOld = typeof data === 'string' && OLD_BOOLEANS.has(data.toLowerCase());
      const hint = isOld ? '; YAML reads yes, no, on and off as texts' : '';
      return description.startsWith('true or false')
        ? `${must}, without quotes${hint}`
        : `must be true or false without quotes: ${description}${hint}`;
    }
    case 'object':
      return description.startsWith('a mapping') ? must : `${must}: a mapping of keys to values`;
    case 'object,array':
      return must;
    case 'array':
      return /\blist\b/.test(description) ? must : `${must}: a list`;
    default:
      return typeof data === 'number' || typeof data === 'boolean'
        ? `${must}; put it in quotes, else YAML reads it as a ${typeof data === 'number' ? 'number' : 'boolean'}`
        : `${must}, a text`;
  }
}

/**
 * Tells no more of a key than a name: an odd key may be a key and a value without the space between
 * them, and a key without a value may be a value in the wrong place.
 */
function unknownKey(
  name: string,
  path: string,
  data: unknown,
  known: readonly string[],
): { path: string; message: string } {
  const meant = meantBy(name, known);
  if (meant !== undefined && name.startsWith(meant))
    if (/^\s*[:=]/.test(name.slice(meant.length)))
      return { path: memberPath(path, meant), message: 'needs a colon and a space behind its name; write key: value' };
  if (meant !== undefined)
    return { path: memberPath(path, toldName(name, false)), message: `is not a known key; did you mean ${meant}?` };
  const isBare = (data as Readonly<Record<string, unknown>>)[name] === null;
  const message = `is not a known key; known here: ${known.join(', ') || 'none'}`;
  return { path: memberPath(path, toldName(name, isBare)), message };
}

/** The known key that another one means. */
function meantBy(name: string, known: readonly string[]): string | undefined {
  const [begin = name] = name.split(/\s*[:=]/);
  return known.includes(begin) ? begin : nearest(name, known);
}
