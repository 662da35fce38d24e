/** Reads the text of a configuration: JSON, or strict YAML. */

import { type Document, parseDocument, visit } from 'yaml';
import { ConfigError, type ConfigProblem } from '../../problems/problem.ts';
import { jsonFault, readUniqueJson } from './json.ts';
import { Lines } from './lines.ts';
import { pathTo } from './member.ts';
import { brokenPlace, placed, type ReadText, toldPath } from './places.ts';
import { jsonTokens, type Token, yamlTokens } from './tokens.ts';
import { yamlFaults } from './yaml-faults.ts';

/** Most that the YAML parser reads, bytes: a second and 60 MB. */
export const MAX_YAML_BYTES = 1_048_576;
/** Faults of the parser that leave the document as it was meant. */
const READABLE: ReadonlySet<string> = new Set(['TAG_RESOLVE_FAILED', 'BAD_COLLECTION_TYPE']);

/** A document, and what is refused of its text although it can be read. */
export interface ReadDocument extends ReadText {
  readonly value: unknown;
  readonly faults: readonly TextFault[];
}

interface TextFault extends ConfigProblem {
  /** In the text, UTF-16 code units. */
  readonly offset: number;
}

/**
 * One YAML 1.2 or JSON document as plain values. Refused: duplicate keys, keys that are no
 * strings, tags, several documents, and aliases, because a few lines of them expand to gigabytes.
 * `file`: what places call it.
 * @throws ConfigError for a text that is no document
 */
export function readConfigText(text: string, file?: string): ReadDocument {
  const value = readUniqueJson(text);
  if (value !== undefined) return { value, faults: [], text, file, tokens: () => jsonTokens(text) };
  if (Buffer.byteLength(text) <= MAX_YAML_BYTES) return readYaml(text, file);
  const { message, offset } = jsonFault(text);
  const bound = `has more than ${MAX_YAML_BYTES} bytes, so it must be JSON`;
  throw new ConfigError([
    { path: 'document', message: `${bound}: ${message}`, place: brokenPlace(text, file, offset) },
  ]);
}

/** The same for a text that must be without fault. @throws ConfigError */
export function parseConfigText(text: string): unknown {
  const { value, faults, ...source } = readConfigText(text);
  if (faults.length > 0) throw placed(new ConfigError(faults), source, offsetsOf(faults));
  return value;
}

/** The offsets of faults by their paths. */
export function offsetsOf(faults: readonly TextFault[]): ReadonlyMap<string, number> {
  return new Map(faults.map(({ path, offset }) => [path, offset]));
}

function readYaml(text: string, file: string | undefined): ReadDocument {
  try {
    const document = parsed(text);
    const broken = [...document.errors, ...document.warnings].some(({ code }) => !READABLE.has(code));
    if (broken) throw new ConfigError(formFaults(text, file, document));
    const faults = [...tagFaults(text, document), ...repeatedKeys(document), ...withoutAliases(document)];
    return { value: document.toJS({ maxAliasCount: 0 }), faults, text, file, tokens: () => yamlTokens(parsed(text)) };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // The parser is recursive: a document nested thousands deep ends in a RangeError.
    const message = 'cannot be read as YAML; is it nested too deeply?';
    throw new ConfigError([{ path: 'document', message, place: brokenPlace(text, file, 0) }]);
  }
}

function parsed(text: string): Document {
  return parseDocument(text, {
    version: '1.2',
    schema: 'core',
    // Checked here: the parser takes half a minute for a megabyte of keys.
    uniqueKeys: false,
    stringKeys: true,
    prettyErrors: false,
    // `silent` would also silence the error of a second document.
    logLevel: 'error',
  });
}

/** What keeps the text from being a document, each under the key that it stands at. */
function formFaults(text: string, file: string | undefined, document: Document): readonly ConfigProblem[] {
  const faults = yamlFaults(text, document);
  const tokens = [...yamlTokens(document)].filter(({ kind }) => kind !== 'scalar');
  const lines = new Lines(text);
  return faults.map(({ offset, words, ofDocument }) => {
    const { start, end } = lines.spot(offset);
    const indent = /^ */.exec(text.slice(start, end))?.[0].length ?? 0;
    const isAbove = (token: Token): boolean => lines.spot(token.start).column <= indent || text[start] === '\t';
    const near = tokens.findLast((token) => token.start <= offset && (token.start >= start || isAbove(token)));
    // A piece of a value may look like a key.
    const path = ofDocument === true ? 'document' : toldPath(near?.at, false);
    return { path, message: words, place: brokenPlace(text, file, offset) };
  });
}

function tagFaults(text: string, document: Document): readonly TextFault[] {
  if (document.errors.length + document.warnings.length === 0) return [];
  const tokens = [...yamlTokens(document)];
  return yamlFaults(text, document).map(({ offset, words }) => ({
    path: toldAt(tokens, offset),
    message: words,
    offset,
  }));
}

/** The path of the last key or item that begins at or before an offset. */
function toldAt(tokens: readonly Token[], offset: number): string {
  return toldPath(tokens.findLast(({ kind, start }) => kind !== 'scalar' && start <= offset)?.at, true);
}

/** Keys that their mapping has already. */
function repeatedKeys(document: Document): readonly TextFault[] {
  const seen = new Map<unknown, Set<string | number>>();
  const faults: TextFault[] = [];
  for (const { kind, at, start } of yamlTokens(document)) {
    if (kind !== 'key' || at === undefined) continue;
    const names = seen.get(at.parent) ?? new Set();
    seen.set(at.parent, names);
    if (names.has(at.key))
      faults.push({ path: pathTo(at), message: 'stands twice in one mapping; keep one', offset: start });
    names.add(at.key);
  }
  return faults;
}

/** Takes the aliases out of a document: they are refused, and the rest of it can be read. */
function withoutAliases(document: Document): readonly TextFault[] {
  const offsets: number[] = [];
  visit(document, { Alias: (_key, { range }) => void offsets.push(range?.[0] ?? 0) });
  if (offsets.length === 0) return [];
  const tokens = [...yamlTokens(document)];
  visit(document, { Alias: () => document.createNode(null) });
  return offsets.map((offset) => ({
    path: toldAt(tokens, offset),
    message: 'is an alias (*name), which is not read; write the value out',
    offset,
  }));
}
