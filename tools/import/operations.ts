/** The operations of a document, each with what its path item and the document say for all. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { nearest } from '../../src/problems/nearest.ts';
import { type Documents, Inexpressible, type Place, resolved } from './references.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'] as const;

/** The document is none that can be imported, or does not hold what was asked for. */
export class DocumentError extends Error {}

export interface Operation {
  /** `GET /reports/{city}`. */
  readonly label: string;
  readonly method: string;
  readonly path: string;
  readonly id: string | undefined;
  readonly tags: readonly string[];
  /** The operation as it stands, and its file. */
  readonly place: Place & { readonly value: JsonObject };
  /** Those of the path item first; an operation's own replace them. */
  readonly parameters: readonly Place[];
  /** Of the operation, else of its path item; undefined: those of the document. */
  readonly servers: Json | undefined;
}

/** An operation that cannot be read. */
export interface Unreadable {
  readonly label: string;
  readonly reason: string;
}

export interface Found {
  readonly operations: readonly Operation[];
  readonly unreadable: readonly Unreadable[];
}

/** Only operations with one of these tags, or of these names (`operationId` or `METHOD /path`). */
export interface Choice {
  readonly tags: readonly string[];
  readonly operations: readonly string[];
}

/** @throws DocumentError */
export function operationsOf(documents: Documents): Found {
  const root = rootOf(documents);
  const paths = root['paths'] ?? {};
  if (!isObject(paths)) throw new DocumentError('paths of the document is no object');
  const operations: Operation[] = [];
  const unreadable: Unreadable[] = [];
  for (const [path, value] of Object.entries(paths)) {
    if (!path.startsWith('/')) continue;
    try {
      const item = resolved(documents, { file: documents.root, value }, 'a path');
      for (const method of METHODS) {
        const operation = item.value[method];
        if (operation === undefined) continue;
        const label = `${method.toUpperCase()} ${path}`;
        if (isObject(operation)) operations.push(operationOf(label, path, item, operation));
        else unreadable.push({ label, reason: 'is no object: write one, such as { responses: { 200: … } }' });
      }
    } catch (error) {
      if (!(error instanceof Inexpressible)) throw error;
      unreadable.push({ label: path, reason: error.message });
    }
  }
  return { operations, unreadable };
}

/** The document itself, of a version that is read. @throws DocumentError */
export function rootOf({ files, root }: Documents): JsonObject {
  const document = files.get(root);
  if (!isObject(document)) throw new DocumentError('the document is no object');
  const { openapi, swagger } = document;
  if (swagger !== undefined)
    throw new DocumentError(
      'the document is Swagger 2.0: convert it to OpenAPI 3 first, for example with swagger2openapi',
    );
  if (typeof openapi !== 'string')
    throw new DocumentError(
      'the document has no openapi: "3.0.x" or "3.1.x" on its top level, so it is no OpenAPI document',
    );
  if (!/^3\.[012](?:\.|$)/.test(openapi))
    throw new DocumentError(`the document is OpenAPI ${openapi.slice(0, 16)}; 3.0, 3.1 and 3.2 are read`);
  return document;
}

function operationOf(
  label: string,
  path: string,
  item: Place & { readonly value: JsonObject },
  value: JsonObject,
): Operation {
  const { operationId, tags } = value;
  return {
    label,
    method: label.slice(0, label.indexOf(' ')),
    path,
    id: typeof operationId === 'string' ? operationId : undefined,
    tags: listed(tags).filter((tag) => typeof tag === 'string'),
    place: { file: item.file, value },
    parameters: [...listed(item.value['parameters']), ...listed(value['parameters'])].map((parameter) => ({
      file: item.file,
      value: parameter,
    })),
    servers: value['servers'] ?? item.value['servers'],
  };
}

/** The chosen ones; all without a choice. @throws DocumentError for a name that is not there */
export function chosen(operations: readonly Operation[], { tags, operations: names }: Choice): readonly Operation[] {
  if (tags.length === 0 && names.length === 0) return operations;
  const known = new Set(operations.flatMap((operation) => operation.tags));
  for (const tag of tags) if (!known.has(tag)) throw missing('tag', tag, [...known]);
  const named = operations.flatMap(({ id, label }) => (id === undefined ? [label] : [id, label]));
  for (const name of names) if (!named.includes(name)) throw missing('operation', name, named);
  return operations.filter(
    ({ id, label, tags: own }) =>
      own.some((tag) => tags.includes(tag)) || names.includes(label) || (id !== undefined && names.includes(id)),
  );
}

function missing(what: string, name: string, known: readonly string[]): DocumentError {
  const hint = nearest(name, known) ?? known.find((other) => other.toLowerCase().includes(name.toLowerCase()));
  const there = hint === undefined ? '' : `; did you mean ${hint}?`;
  return new DocumentError(`the document has no ${what} ${JSON.stringify(name)}${there}`);
}

export function listed(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : [];
}
