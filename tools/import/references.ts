/** Follows `$ref` through the documents that were read; nothing is fetched here. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';

/** The document and the files beside it, by the names that `fileOf` makes of references. */
export interface Documents {
  readonly root: string;
  readonly files: ReadonlyMap<string, Json>;
}

/** A value with the file that it stands in: references in it are relative to that file. */
export interface Place {
  readonly file: string;
  readonly value: Json;
}

/** The target of a reference; `key` is the same for all references to it. */
export interface Target extends Place {
  readonly key: string;
}

/**
 * The gateway cannot say what the document says here. The message completes "it …"; what holds it
 * is left out where it is optional, else skipped with the message.
 */
export class Inexpressible extends Error {}

/** What helps where a document has files that are not read. */
export const BUNDLE = 'make one file of the document first (npx @redocly/cli bundle DOCUMENT --output one.yaml)';
/** References to references, at most. */
const MAX_HOPS = 32;
const SCHEME = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

/** The file that a reference of `file` names; undefined for one that is no file beside it. */
export function fileOf(reference: string, file: string): string | undefined {
  const [path = ''] = reference.split('#');
  if (path === '') return file;
  const name = decoded(path);
  if (SCHEME.test(path) || name === undefined || name.startsWith('/') || name.includes('\\')) return undefined;
  const parts = file.split('/').slice(0, -1);
  for (const part of name.split('/')) {
    if (part === '..') {
      if (parts.pop() === undefined) return undefined;
    } else if (part !== '.' && part !== '') parts.push(part);
  }
  return parts.join('/');
}

/** What a reference in `file` names. @throws Inexpressible for one that leads nowhere or outside */
export function target(documents: Documents, reference: Json, file: string): Target {
  if (typeof reference !== 'string') throw new Inexpressible('has a $ref that is no text: write "#/components/…"');
  const name = fileOf(reference, file);
  const document = name === undefined ? undefined : documents.files.get(name);
  if (name === undefined || document === undefined)
    throw new Inexpressible(
      `refers to ${quoted(reference)}, which is no file that was read beside the document: ${BUNDLE}`,
    );
  const pointer = reference.split('#')[1] ?? '';
  const value = pointedAt(document, pointer);
  if (value === undefined)
    throw new Inexpressible(`refers to ${quoted(reference)}, which is not there: add it, or correct $ref`);
  return { file: name, value, key: `${name}#${pointer}` };
}

/** The object at a place; beside a reference nothing else counts. @throws Inexpressible */
export function resolved(documents: Documents, place: Place, what: string): Place & { readonly value: JsonObject } {
  let { file, value } = place;
  for (let hops = 0; hops < MAX_HOPS; hops += 1) {
    if (!isObject(value)) throw new Inexpressible(`has ${what} that is no object: write one, or a $ref`);
    if (value['$ref'] === undefined) return { file, value };
    ({ file, value } = target(documents, value['$ref'], file));
  }
  throw new Inexpressible(`has ${what} that refers to itself: write it out in one place`);
}

function pointedAt(document: Json, pointer: string): Json | undefined {
  const path = decoded(pointer);
  if (path === undefined || (path !== '' && !path.startsWith('/'))) return undefined;
  let node: Json | undefined = document;
  for (const token of path.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, name)) return undefined;
    node = (node as JsonObject)[name];
  }
  return node;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
