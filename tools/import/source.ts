/** Reads an OpenAPI document from a file or a URL, and the files beside it that it refers to. */

import { readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { parse } from 'yaml';
import { UnavailableError } from '../../src/cli/program.ts';
import type { Json } from '../../src/json/json.ts';
import { DocumentError } from './operations.ts';
import { BUNDLE, type Documents, fileOf } from './references.ts';

/** Largest document with its files, bytes; YAML takes 60 times as much memory. */
const MAX_BYTES = 67_108_864;
const MAX_YAML_BYTES = 16_777_216;
const MAX_FILES = 200;
/** Deepest nesting of a document, levels: what reads it further is recursive. */
const MAX_LEVELS = 500;
const TIMEOUT_MS = 30_000;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** `source`: a path, or an https URL (http on loopback). @throws DocumentError of one line */
export async function readDocuments(source: string): Promise<Documents> {
  const url = /^[a-z][a-z0-9+.-]+:\/\//i.test(source) ? URL.parse(source) : undefined;
  if (url === null) throw new DocumentError(`${source} is no URL`);
  if (url === undefined) return fromFolder(source);
  const root = basename(url.pathname) || 'document';
  return { root, files: new Map([[root, parsed(await download(url), source)]]) };
}

/** References leave neither the folder of the document nor this machine. */
function fromFolder(path: string): Documents {
  const root = basename(path);
  const folder = realpathSync.native(dirname(path));
  const files = new Map<string, Json>([[root, parsed(contentOf(path), path)]]);
  let bytes = statSync(path).size;
  for (const [name, document] of files)
    for (const reference of referencesIn(document)) {
      const file = fileOf(reference, name);
      if (file === undefined || files.has(file)) continue;
      const place = inside(folder, file);
      if (place === undefined) continue;
      const text = contentOf(place);
      bytes += Buffer.byteLength(text);
      if (files.size >= MAX_FILES || bytes > MAX_BYTES)
        throw new DocumentError(`${path} refers to more than ${MAX_FILES} files or ${MAX_BYTES} bytes: ${BUNDLE}`);
      files.set(file, parsed(text, place));
    }
  return { root, files };
}

/** The real path of a file below the folder; undefined when there is none, or it is a way out. */
function inside(folder: string, file: string): string | undefined {
  try {
    const path = realpathSync.native(join(folder, file));
    return path.startsWith(folder.endsWith(sep) ? folder : folder + sep) && statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined;
  }
}

function contentOf(path: string): string {
  const stat = statSync(path);
  if (!stat.isFile()) throw new DocumentError(`${path} is not a regular file`);
  if (stat.size > MAX_BYTES) throw new DocumentError(`${path} is larger than ${MAX_BYTES} bytes`);
  return utf8(readFileSync(path), path);
}

async function download(url: URL): Promise<string> {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && LOOPBACK.test(url.hostname)))
    throw new DocumentError(`${url.href} is neither https nor http on loopback`);
  let answer: Response;
  const parts: Uint8Array[] = [];
  try {
    answer = await fetch(url, {
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { accept: 'application/json, application/yaml, */*' },
    });
    if (answer.status >= 300 && answer.status < 400)
      throw new DocumentError(
        `${url.href} leads to ${answer.headers.get('location') ?? 'another address'}: name that one`,
      );
    if (!answer.ok) throw new DocumentError(`${url.href} answers ${answer.status}`);
    let bytes = 0;
    for await (const part of answer.body ?? []) {
      bytes += part.length;
      if (bytes > MAX_BYTES) throw new DocumentError(`${url.href} is larger than ${MAX_BYTES} bytes`);
      parts.push(part);
    }
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    const { cause } = error instanceof Error ? error : {};
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
    throw new UnavailableError(`${url.href} cannot be read${code}`);
  }
  return utf8(Buffer.concat(parts), url.href);
}

function utf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new DocumentError(`${name} is not UTF-8`);
  }
}

/** JSON, else YAML. Aliases may repeat a little, and cannot expand without bound. */
function parsed(text: string, name: string): Json {
  const document = text.trimStart().startsWith('{') ? parsedJson(text, name) : parsedYaml(text, name);
  if (isDeep(document)) throw new DocumentError(`${name} is nested deeper than ${MAX_LEVELS} levels`);
  return document;
}

function parsedJson(text: string, name: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    // YAML may begin with a brace too.
    if (Buffer.byteLength(text) <= 1_048_576) return parsedYaml(text, name);
    throw new DocumentError(`${name} is no JSON: ${oneLine(error)}`);
  }
}

function parsedYaml(text: string, name: string): Json {
  if (Buffer.byteLength(text) > MAX_YAML_BYTES)
    throw new DocumentError(`${name} is larger than ${MAX_YAML_BYTES} bytes, which only JSON may be`);
  try {
    return parse(text, { merge: true, logLevel: 'error', maxAliasCount: 1_000, prettyErrors: true });
  } catch (error) {
    throw new DocumentError(`${name} is no YAML: ${oneLine(error)}`);
  }
}

function oneLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '').replace(/:$/, '') : 'it cannot be read';
}

function isDeep(document: Json): boolean {
  let level: readonly Json[] = [document];
  for (let depth = 0; depth < MAX_LEVELS; depth += 1) {
    const next = new Set<Json>();
    for (const value of level)
      if (value !== null && typeof value === 'object')
        for (const inner of Object.values(value)) if (inner !== null && typeof inner === 'object') next.add(inner);
    if (next.size === 0) return false;
    level = [...next];
  }
  return true;
}

function referencesIn(document: Json): readonly string[] {
  const found = new Set<string>();
  const seen = new Set<Json>();
  const waiting: Json[] = [document];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (value === null || typeof value !== 'object' || seen.has(value)) continue;
    seen.add(value);
    for (const [name, inner] of Object.entries(value)) {
      if (name === '$ref' && typeof inner === 'string') found.add(inner);
      else waiting.push(inner);
    }
  }
  return [...found];
}
