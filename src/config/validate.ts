/** Checks the expanded document against the published schema. */

import type { ErrorObject } from 'ajv/dist/2020.js';
import { nearest } from '../problems/nearest.ts';
import { memberPath, type ProblemList } from '../problems/problem.ts';
import { matchesSchema } from './compiled.ts';
import type { ConfigDocument } from './document/document.ts';

/** Every violation becomes a problem that names what would be right, never the configured value. */
export function validateDocument(document: unknown, problems: ProblemList): document is ConfigDocument {
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    problems.add('document', 'must be a mapping of keys to values');
    return false;
  }
  if (matchesSchema(document)) return true;
  for (const error of matchesSchema.errors ?? []) {
    const problem = explain(error, document);
    if (problem !== undefined) problems.add(problem.path, problem.message);
  }
  return false;
}

interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly propertyNames?: SchemaNode;
  readonly minimum?: number;
  readonly maximum?: number;
}

function explain(error: ErrorObject, document: object): { path: string; message: string } | undefined {
  const parent = (error.parentSchema ?? {}) as SchemaNode;
  const path = pathOf(error.instancePath, document);
  const here = path === '' ? 'document' : path;
  switch (error.keyword) {
    case 'if':
      return undefined;
    case 'additionalProperties': {
      const name = String(error.params['additionalProperty']);
      return { path: memberPath(path, name), message: unknownKey(name, Object.keys(parent.properties ?? {})) };
    }
    case 'required': {
      // The branches of `oneOf` only list what is allowed; the `oneOf` error itself is clearer.
      if (error.schemaPath.includes('/oneOf/')) return undefined;
      const name = String(error.params['missingProperty']);
      const wanted = parent.properties?.[name]?.description;
      return { path: memberPath(path, name), message: wanted === undefined ? 'is missing' : `is missing: ${wanted}` };
    }
    case 'propertyNames':
      return {
        path: memberPath(path, String(error.params['propertyName'])),
        message: `must be named by ${parent.propertyNames?.description ?? 'a legal name'}`,
      };
    case 'false schema':
      return { path: here, message: 'is not used here; remove it' };
    case 'type':
      return { path: here, message: `must be ${parent.description ?? 'another type'}${typeHint(error, parent)}` };
    default:
      if (error.propertyName !== undefined) return undefined;
      return { path: here, message: `must be ${parent.description ?? 'something else'}${range(parent)}` };
  }
}

function range({ minimum, maximum }: SchemaNode): string {
  return minimum === undefined || maximum === undefined ? '' : ` (${minimum} to ${maximum})`;
}

/** A wrong type in the words of the file. YAML turns an unquoted 0x… or 0.01 into a number. */
function typeHint({ params, data }: ErrorObject, parent: SchemaNode): string {
  if (params['type'] === 'integer') return `${range(parent)}, a whole number without quotes`;
  if (params['type'] !== 'string' || typeof data !== 'number') return '';
  return '; put it in quotes, else YAML reads it as a number';
}

function unknownKey(name: string, known: readonly string[]): string {
  const hint = nearest(name, known);
  if (hint !== undefined) return `is not a known key; did you mean ${hint}?`;
  return `is not a known key; known here: ${known.join(', ') || 'none'}`;
}

/** A JSON pointer as a configuration path; only the document tells a list index from a key. */
function pathOf(pointer: string, document: object): string {
  let path = '';
  let value: unknown = document;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    path = memberPath(path, Array.isArray(value) ? Number(name) : name);
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return path;
}
