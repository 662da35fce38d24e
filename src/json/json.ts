/** JSON: its types, the canonical form, and the strict parser for JSON from outside. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/**
 * RFC 8785 (JCS): one spelling for equal JSON values, so that a digest depends on the value alone.
 * Numbers are printed as by ECMAScript, names sorted in UTF-16 order. The strict parser bounds the
 * depth of its values, so recursion is safe.
 */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  const object = value as { readonly [name: string]: Json };
  let members = '';
  // Sorted in UTF-16 order, as `sort` does by itself.
  for (const name of Object.keys(object).sort())
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(object[name] ?? null)}`;
  return `{${members}}`;
}

/** Deepest nesting of arrays and objects that is read. */
export const MAX_JSON_DEPTH = 64;
/** Most object members in one document. */
export const MAX_JSON_MEMBERS = 10_000;
/** Names that change a prototype when a document is copied carelessly. */
export const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const INTEGER = /^-?\d+$/;

/** Whether a number of JSON is in range: an integer exact in a double, or a finite number. */
function isInRange(token: string): boolean {
  const value = Number(token);
  return INTEGER.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** The fault of a document; the message never quotes the input. */
export class JsonError extends Error {
  readonly reason:
    | 'malformed_json'
    | 'duplicate_key'
    | 'forbidden_key'
    | 'too_deep'
    | 'too_many_members'
    | 'number_out_of_range';
  /**
   * The document as a lenient parser reads it; undefined when it is not JSON. Only for finding the
   * id of the request that failed.
   */
  document: Json | undefined;

  constructor(reason: JsonError['reason'], message: string) {
    super(message);
    this.name = 'JsonError';
    this.reason = reason;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const COLON = 0x3a;
const SPACE = 0x20;
const NUMERIC = '0123456789.eE+-';
/** An integer of so many characters is exact in a double. */
const SHORT_INTEGER = 15;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads strict JSON (I-JSON, RFC 7493): UTF-8 without byte order mark, no duplicate names, no name
 * that reaches a prototype, at most 10,000 members and 64 levels (or `maxDepth`), no lone
 * surrogate, no number outside the exact range of a double. `JSON.parse` alone keeps the last of
 * two equal names and rounds silently; the backend may read the same bytes differently.
 * @throws JsonError
 */
export function parseStrictJson(bytes: Uint8Array, maxDepth: number = MAX_JSON_DEPTH): Json {
  const text = decode(bytes);
  let value: Json;
  try {
    // Grammar first: the scan below assumes a well-formed document.
    value = JSON.parse(text) as Json;
  } catch {
    throw new JsonError('malformed_json', 'The body is not well-formed JSON.');
  }
  try {
    scan(text, maxDepth);
  } catch (error) {
    if (error instanceof JsonError) error.document = value;
    throw error;
  }
  return value;
}

/** Reads strict JSON; undefined for bytes that are not strict JSON. */
export function readStrictJson(bytes: Uint8Array): Json | undefined {
  try {
    return parseStrictJson(bytes);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

function decode(bytes: Uint8Array): string {
  try {
    const text = utf8.decode(bytes);
    if (text.charCodeAt(0) !== 0xfeff) return text;
  } catch {
    // Falls through: the same answer as for a byte order mark.
  }
  throw new JsonError('malformed_json', 'The body is not UTF-8 without byte order mark.');
}

/** One pass over the characters, with a stack of the names in each open object. */
function scan(text: string, maxDepth: number): void {
  /** Undefined stands for an array. */
  const open: (Set<string> | undefined)[] = [];
  let members = 0;
  let at = 0;
  let backslash = text.indexOf('\\');
  const mayHaveHalves = text.includes('\\ud') || text.includes('\\uD');
  while (at < text.length) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfString(text, at);
      const isEscaped = backslash >= 0 && backslash < end;
      if (isEscaped) backslash = text.indexOf('\\', end);
      const names = open.at(-1);
      if (names !== undefined && isName(text, end)) {
        members += 1;
        if (members > MAX_JSON_MEMBERS)
          throw new JsonError('too_many_members', `The body has more than ${MAX_JSON_MEMBERS} members.`);
        addName(names, isEscaped ? readEscaped(text.slice(at, end)) : text.slice(at + 1, end - 1));
      } else if (isEscaped && mayHaveHalves) readEscaped(text.slice(at, end));
      at = end;
    } else if (char === OPEN_OBJECT || char === OPEN_ARRAY) {
      open.push(char === OPEN_OBJECT ? new Set() : undefined);
      if (open.length > maxDepth) throw new JsonError('too_deep', `The body is nested deeper than ${maxDepth} levels.`);
      at += 1;
    } else if (char === CLOSE_OBJECT || char === CLOSE_ARRAY) {
      open.pop();
      at += 1;
    } else if (char === MINUS || isDigit(char)) at = checkNumber(text, at);
    else at += 1;
  }
}

/** Index after the closing quote of the string that begins at `start` of well-formed JSON. */
export function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); ; quote = text.indexOf('"', quote + 1)) {
    let behind = quote;
    while (text.charCodeAt(behind - 1) === BACKSLASH) behind -= 1;
    // Two backslashes are one character; a single one before the quote escapes it.
    if ((quote - behind) % 2 === 0) return quote + 1;
  }
}

/** In an object a name is followed by a colon, a value by a comma or a brace. */
function isName(text: string, end: number): boolean {
  let at = end;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return text.charCodeAt(at) === COLON;
}

/** Only an escape can spell half a character: the bytes are UTF-8. */
function readEscaped(raw: string): string {
  const value = JSON.parse(raw) as string;
  if (!value.isWellFormed()) throw new JsonError('malformed_json', 'The body has a lone surrogate in a string.');
  return value;
}

function addName(names: Set<string>, name: string): void {
  if (FORBIDDEN_NAMES.has(name))
    throw new JsonError('forbidden_key', 'The body has a member named __proto__, constructor or prototype.');
  if (names.has(name)) throw new JsonError('duplicate_key', 'The body has an object with the same member name twice.');
  names.add(name);
}

function isDigit(char: number): boolean {
  return char >= DIGIT_0 && char <= DIGIT_9;
}

/** Returns the index after the number. */
function checkNumber(text: string, start: number): number {
  let at = start + 1;
  while (isDigit(text.charCodeAt(at))) at += 1;
  if (at - start <= SHORT_INTEGER && !NUMERIC.includes(text.charAt(at) || ' ')) return at;
  while (at < text.length && NUMERIC.includes(text.charAt(at))) at += 1;
  if (!isInRange(text.slice(start, at)))
    throw new JsonError('number_out_of_range', 'The body has a number outside the exact range of a double.');
  return at;
}
