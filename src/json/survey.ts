/**
 * The quick look at a document: one pass over its bytes, without a string or a set for each name.
 * Most documents need no other; what it cannot tell for certain is left to the exact scan.
 */

import { FORBIDDEN_NAMES, isInRange, MAX_JSON_MEMBERS } from './limits.ts';
import type { Json } from './types.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
const POINT = 0x2e;

/** What a byte outside of strings begins or ends. */
const TEXT = 1;
const MEMBER = 2;
const OPEN = 3;
const CLOSE = 4;
const NUMBER = 5;
const KINDS = table(['"', TEXT], [':', MEMBER], ['{[', OPEN], ['}]', CLOSE], ['-0123456789', NUMBER]);
/** Where a string ends, or says something else than its bytes. */
const STOPS = table(['"\\', 1]);
const DIGITS = table(['0123456789', 1]);
const FRACTION = table(['0123456789.', 1]);
const NUMERIC = table(['0123456789.eE+-', 1]);

/** An integer of so many bytes is exact in a double. */
const SHORT_INTEGER = 15;
/** A number of more bytes takes a closer look; with fewer and no exponent it is finite. */
const LONG_NUMBER = 300;
/** A number of so few bytes with an exponent of so few is finite: below 10^(64 + 99). */
const SHORT_POWER = { number: 64, exponent: 2 } as const;
/** Bytes of a string that are read one by one before a search for what stops it costs less. */
const LONG_STRING = 48;
const FORBIDDEN_LENGTHS: ReadonlySet<number> = new Set([...FORBIDDEN_NAMES].map(({ length }) => length));
/** What a forbidden name begins with: others of its length, such as `signature`, are not read. */
const FORBIDDEN_FIRST = table([[...FORBIDDEN_NAMES].map(([first = '']) => first).join(''), 1]);

/**
 * Whether a document certainly keeps the rules of `parseStrictJson`. `bytes`: well-formed JSON in
 * UTF-8; `value`: what `JSON.parse` makes of it. False says nothing: the exact scan has to look.
 *
 * Of two equal names `JSON.parse` keeps one, so there are none where the value has as many members
 * as the bytes have colons outside of strings.
 */
export function isPlainlyStrict(bytes: Uint8Array, value: Json, maxDepth: number): boolean {
  const { length } = bytes;
  /** The next of each, kept so that no byte is searched twice. */
  let backslash = -1;
  let quote = -1;
  let members = 0;
  let depth = 0;
  let at = 0;
  while (at < length) {
    const start = at;
    switch (KINDS[bytes[at] ?? 0]) {
      case TEXT: {
        at += 1;
        for (;;) {
          const long = at + LONG_STRING;
          if (backslash < at || quote < at) while (STOPS[bytes[at] ?? 0] === 0 && at < long) at += 1;
          if (STOPS[bytes[at] ?? 0] === 0) {
            if (backslash < at) backslash = indexFrom(bytes, BACKSLASH, at);
            if (quote < at) quote = indexFrom(bytes, QUOTE, at);
            at = Math.min(backslash, quote);
          }
          if (bytes[at] !== BACKSLASH) break;
          at = behindEscape(bytes, at);
          if (at < 0) return false;
        }
        at += 1;
        if (isForbidden(bytes, start + 1, at - 1)) return false;
        break;
      }
      case MEMBER:
        members += 1;
        at += 1;
        break;
      case OPEN:
        depth += 1;
        if (depth > maxDepth) return false;
        at += 1;
        break;
      case CLOSE:
        depth -= 1;
        at += 1;
        break;
      case NUMBER:
        do at += 1;
        while (DIGITS[bytes[at] ?? 0] === 1);
        if (at - start > SHORT_INTEGER || NUMERIC[bytes[at] ?? 0] === 1) at = endOfNumber(bytes, start);
        if (at < 0) return false;
        break;
      default:
        at += 1;
    }
  }
  return members <= MAX_JSON_MEMBERS && members === countMembers(value);
}

/** Whether a text is a name that reaches a prototype. */
function isForbidden(bytes: Uint8Array, start: number, end: number): boolean {
  if (FORBIDDEN_FIRST[bytes[start] ?? 0] === 0 || !FORBIDDEN_LENGTHS.has(end - start)) return false;
  return FORBIDDEN_NAMES.has(ascii(bytes, start, end));
}

/**
 * Index behind the escape that begins at a byte; -1 where it may spell half a character or a letter
 * of a forbidden name.
 */
function behindEscape(bytes: Uint8Array, at: number): number {
  if (bytes[at + 1] !== SMALL_U) return at + 2;
  const code = Number.parseInt(ascii(bytes, at + 2, at + 6), 16);
  return (code >= 0xd800 && code <= 0xdfff) || (code >= 0x20 && code <= 0x7f) ? -1 : at + 6;
}

/** Index behind a number; -1 where it may be out of range. */
function endOfNumber(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  let isFraction = false;
  for (; FRACTION[bytes[at] ?? 0] === 1; at += 1) if (bytes[at] === POINT) isFraction = true;
  const exponentAt = at;
  while (NUMERIC[bytes[at] ?? 0] === 1) at += 1;
  const exponent = at - exponentAt;
  if (at - start > LONG_NUMBER) return -1;
  if (exponent === 0 && isFraction) return at;
  if (exponent > 0 && exponent <= 1 + SHORT_POWER.exponent && at - start <= SHORT_POWER.number) return at;
  return isInRange(ascii(bytes, start, at)) ? at : -1;
}

/** All members of all objects in a value. */
function countMembers(value: Json): number {
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) members += countMembers(item);
  } else if (typeof value === 'object' && value !== null) {
    const object = value as { readonly [key: string]: Json };
    for (const name in object) {
      members += 1;
      const member = object[name];
      if (typeof member === 'object' && member !== null) members += countMembers(member);
    }
  }
  return members;
}

/** Index of the next such byte; the length where there is none. */
function indexFrom(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

function ascii(bytes: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...bytes.subarray(start, end));
}

/** A number for each byte: those of the characters, 0 for all others. */
function table(...kinds: readonly (readonly [characters: string, kind: number])[]): Uint8Array {
  const all = new Uint8Array(256);
  for (const [characters, kind] of kinds) for (const character of characters) all[character.charCodeAt(0)] = kind;
  return all;
}
