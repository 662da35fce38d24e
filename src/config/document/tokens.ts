/** The keys and values of a text, with their offsets. */

import { type Document, isMap, isScalar, isSeq } from 'yaml';
import { LEXEME } from './json.ts';
import type { Member } from './member.ts';
import { MAX_CONFIG_DEPTH } from './read.ts';

/**
 * `key`: a name of a member; `bare` when no value stands behind it. `item`: the begin of what is in
 * a list, whose own tokens follow. `scalar`: a value that holds no others. Offsets are UTF-16 code
 * units, `end` is behind the last one.
 */
export interface Token {
  readonly kind: 'key' | 'item' | 'scalar';
  readonly at: Member | undefined;
  readonly start: number;
  readonly end: number;
  readonly bare?: boolean;
}

interface OpenCollection {
  readonly at: Member | undefined;
  readonly list: boolean;
  /** What is being read; in a mapping undefined before its name. */
  member: Member | undefined;
}

/** Of a text that is well-formed JSON, in its order. Nothing is kept: the text may be large. */
export function* jsonTokens(text: string): Generator<Token> {
  const open: OpenCollection[] = [];
  for (const { 0: lexeme, index: start } of text.matchAll(LEXEME)) {
    const end = start + lexeme.length;
    const top = open.at(-1);
    if (lexeme === '}' || lexeme === ']') open.pop();
    else if (lexeme === ',') advance(top);
    else if (lexeme === ':') continue;
    else if (top !== undefined && top.member === undefined) {
      top.member = { parent: top.at, key: nameIn(lexeme) };
      if (isTold(open)) yield { kind: 'key', at: top.member, start, end };
    } else {
      const at = top?.member;
      if (top?.list === true && isTold(open)) yield { kind: 'item', at, start, end: start };
      if (lexeme === '{') open.push({ at, list: false, member: undefined });
      else if (lexeme === '[') open.push({ at, list: true, member: { parent: at, key: 0 } });
      else if (isTold(open)) yield { kind: 'scalar', at, start, end };
    }
  }
}

/** What is deeper is refused as a whole. */
function isTold({ length }: readonly unknown[]): boolean {
  return length <= MAX_CONFIG_DEPTH;
}

function nameIn(lexeme: string): string {
  return lexeme.includes('\\') ? String(JSON.parse(lexeme)) : lexeme.slice(1, -1);
}

function advance(collection: OpenCollection | undefined): void {
  if (collection === undefined) return;
  const { at, member } = collection;
  collection.member = typeof member?.key === 'number' ? { parent: at, key: member.key + 1 } : undefined;
}

/** Of a parsed YAML document, in the order of its text. */
export function* yamlTokens(document: Document): Generator<Token> {
  yield* tokensOf(document.contents, undefined, 0);
}

function* tokensOf(node: unknown, at: Member | undefined, depth: number): Generator<Token> {
  if (depth > MAX_CONFIG_DEPTH) return;
  if (isMap(node))
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue;
      const member: Member = { parent: at, key: String(key.value) };
      const [start, end] = spanOf(key);
      yield { kind: 'key', at: member, start, end, bare: isEmpty(value) };
      yield* tokensOf(value, member, depth + 1);
    }
  else if (isSeq(node))
    for (const [index, item] of node.items.entries()) {
      const member: Member = { parent: at, key: index };
      const [start] = spanOf(item);
      yield { kind: 'item', at: member, start, end: start };
      yield* tokensOf(item, member, depth + 1);
    }
  else if (!isEmpty(node)) {
    const [start, end] = spanOf(node);
    yield { kind: 'scalar', at, start, end };
  }
}

function isEmpty(value: unknown): boolean {
  const [start, end] = spanOf(value);
  return start === end;
}

/** Where a node's own text begins and ends. */
function spanOf(node: unknown): readonly [number, number] {
  const { range } = (node ?? {}) as { readonly range?: readonly [number, number, number] | null };
  return range === undefined || range === null ? [0, 0] : [range[0], range[1]];
}
