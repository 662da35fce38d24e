/** Finds the lines of problems in the text of a configuration, and shows them without secrets. */

import {
  ConfigError,
  type ConfigProblem,
  type Excerpt,
  memberPath,
  type ProblemPlace,
  pathsAbove,
} from '../../problems/problem.ts';
import { Lines, type Spot } from './lines.ts';
import { type Member, membersTo, stepsTo, toldName } from './member.ts';
import { mayBeSecret, NAMES, schemaAt, standsForSecret, WORDS } from './schema-at.ts';
import type { Token } from './tokens.ts';

/** A text that was read as a document. */
export interface ReadText {
  readonly text: string;
  /** As it was named; undefined for a text that is no file. */
  readonly file: string | undefined;
  /** In the order of the text; reading it again is cheaper than keeping them. */
  readonly tokens: () => Iterable<Token>;
}

/** Most excerpts: a program that writes a file makes the same mistake in all of it. */
const MOST_EXCERPTS = 100;
/** Longest excerpt, characters; a JSON file may be a single line. */
const EXCERPT_LENGTH = 96;
/** How far around a problem its line is read, characters. */
const WINDOW = 1_000;

/** The same problems with their places in a text. `offsets`: of those that are known already. */
export function placed(
  { problems }: ConfigError,
  { text, file, tokens }: ReadText,
  offsets: ReadonlyMap<string, number> = new Map(),
): ConfigError {
  const found = new Map([...positions(problems, tokens()), ...offsets]);
  const lines = new Lines(text);
  const spots = new Map<string, Spot>();
  for (const { path } of problems) {
    const offset = nearestOffset(path, found);
    if (offset !== undefined) spots.set(path, lines.spot(offset));
  }
  const shown = [...spots.values()].toSorted((one, other) => one.offset - other.offset).slice(0, MOST_EXCERPTS);
  const excerpts = excerptsOf(shown, text, tokens());
  const all = problems.map((problem) => {
    const { path } = problem;
    const spot = spots.get(path);
    if (spot !== undefined) return { ...problem, place: placeOf(spot, file, excerpts.get(spot.offset)) };
    return isOfDocument(path) ? { ...problem, place: placeOf(lines.spot(0), file, undefined) } : problem;
  });
  return new ConfigError(all.toSorted(inTextOrder));
}

/** What is in no text comes last. */
function inTextOrder({ place: one }: ConfigProblem, { place: other }: ConfigProblem): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return one.line - other.line || one.column - other.column;
}

/**
 * A place in a text that could not be read as a document: of its line only the indentation and the
 * first key are shown.
 */
export function brokenPlace(text: string, file: string | undefined, offset: number): ProblemPlace {
  const spot = new Lines(text).spot(offset);
  const line = text.slice(spot.start, Math.min(spot.end, spot.start + EXCERPT_LENGTH));
  const [, indent = '', key = '', colon = ''] = /^(\s*(?:-\s+)*)(?:(["']?\w+["']?)(\s*:))?/.exec(line) ?? [];
  const name = NAMES.has(key.replaceAll(/["']/g, '')) ? key + colon : '';
  const shown = `${indent}${name}`.replaceAll('\t', '→');
  const rest = line.slice(shown.length).trim() === '' ? '' : `${name === '' ? '' : ' '}…`;
  const caret = Math.min(offset - spot.start, Math.max(0, `${shown}${rest}`.length - 1));
  return placeOf(spot, file, { text: shown + rest, caret });
}

function placeOf({ line, column }: Spot, file: string | undefined, excerpt: Excerpt | undefined): ProblemPlace {
  return { ...(file === undefined ? {} : { file }), line, column, ...(excerpt === undefined ? {} : { excerpt }) };
}

/** Where the paths of the problems, and those above them, stand in the text. */
function positions(problems: readonly ConfigProblem[], tokens: Iterable<Token>): ReadonlyMap<string, number> {
  const wanted = new Set(problems.flatMap(({ path }) => [path, ...pathsAbove(path)]));
  const parents = new Set(['', ...[...wanted].flatMap(pathsAbove)]);
  // Most members are in none of these: their paths are not written.
  const paths = new Map<unknown, string | undefined>([[undefined, '']]);
  const found = new Map<string, number>();
  for (const { kind, at, start, bare } of tokens) {
    if (kind === 'scalar' || at === undefined) continue;
    const parent = paths.get(at.parent);
    if (parent === undefined || !parents.has(parent)) continue;
    const spellings = [at.key, typeof at.key === 'string' ? toldName(at.key, bare === true) : at.key];
    for (const path of new Set(spellings.map((key) => memberPath(parent, key))).intersection(wanted)) {
      found.set(path, start);
      paths.set(at, path);
    }
  }
  return found;
}

/** That of the path, else of the nearest one above it. */
function nearestOffset(path: string, found: ReadonlyMap<string, number>): number | undefined {
  const known = [path, ...pathsAbove(path).toReversed()].find((one) => found.has(one));
  return known === undefined ? undefined : found.get(known);
}

/** Or else of something beside it, such as an environment variable. */
function isOfDocument(path: string): boolean {
  return path === 'document' || schemaAt([path.replace(/[.[].*/s, '')]) !== undefined;
}

/** The lines of the spots, by their offsets. */
function excerptsOf(spots: readonly Spot[], text: string, tokens: Iterable<Token>): ReadonlyMap<number, Excerpt> {
  const open = [...new Map(spots.map((spot) => [spot.offset, spot])).values()]
    .map(({ offset, start, end }) => ({
      offset,
      from: Math.max(start, offset - WINDOW),
      to: Math.min(end, offset + WINDOW),
      inside: [] as Token[],
    }))
    .toSorted((one, other) => one.from - other.from);
  let first = 0;
  for (const token of tokens) {
    while (first < open.length && (open[first]?.to ?? 0) < token.start) first += 1;
    for (let at = first; at < open.length; at += 1) {
      const window = open[at];
      if (window === undefined || window.from > token.end) break;
      if (token.start <= window.to) window.inside.push(token);
    }
  }
  return new Map(open.map(({ offset, from, to, inside }) => [offset, excerptOf(text, from, to, inside, offset)]));
}

/** The part of a line between two offsets, as it may be shown. */
function excerptOf(text: string, from: number, to: number, tokens: readonly Token[], offset: number): Excerpt {
  let shown = '';
  let caret = 0;
  let at = from;
  for (const token of tokens) {
    if (token.start > at) shown += shownBetween(text.slice(at, token.start));
    if (token.start === offset) caret = shown.length;
    if (token.end > token.start) shown += shownToken(token, text);
    at = Math.max(at, token.end);
  }
  if (at < to) shown += shownBetween(text.slice(at, to));
  return cut(shown.trimEnd(), caret);
}

/** What is between keys and values: brackets, colons, dashes; no comment. */
function shownBetween(between: string): string {
  return between
    .replace(/#.*/s, '')
    .replace(/[^\s:\-{}[\],?]+/g, '…')
    .replaceAll(/\s/g, ' ');
}

function cut(shown: string, caret: number): Excerpt {
  if (shown.length <= EXCERPT_LENGTH) return { text: shown, caret };
  const from = Math.max(0, caret - EXCERPT_LENGTH / 2);
  const before = from > 0 ? '…' : '';
  const to = from + EXCERPT_LENGTH;
  return {
    text: `${before}${shown.slice(from, to)}${to < shown.length ? '…' : ''}`,
    caret: caret - from + before.length,
  };
}

const HIDDEN = '…';
/** One or more placeholders and nothing else. */
const PLACEHOLDERS = /^(["']?)(?:\$\{[A-Za-z_][\w]*(?::-[^}]*)?\}|\$\{file:[^}]*\})+\1$/;
/** A run that is long enough for a key or a token, a login in a URL, or its query. */
const SECRET_LIKE = /(?=[A-Za-z_+=-]*\d)[\w+=-]{12}|[\w+=-]{24}|@|\?/;
/** Too short for a key or a token. */
const SHORT_NUMBER = /^(["']?)-?[\d.]{1,9}\1$/;
const CONSTANT = /^(?:true|false|null|~)$/;

/**
 * A key or a value as it may be shown. Of values these: placeholders, and where no secret belongs
 * what does not look like one. Any other one may be a secret in the wrong place.
 */
function shownToken({ kind, at, start, end, bare }: Token, text: string): string {
  if (end - start > EXCERPT_LENGTH * 2) return HIDDEN;
  const source = text.slice(start, end);
  const steps = stepsTo(at);
  if (kind === 'key')
    return isTold(String(at?.key), bare === true || standsForSecret(steps.slice(0, -1))) ? source : HIDDEN;
  if (PLACEHOLDERS.test(source)) return source.replaceAll(/:-[^}]+/g, `:-${HIDDEN}`);
  if (mayBeSecret(steps)) return HIDDEN;
  const isPlain = SHORT_NUMBER.test(source) || CONSTANT.test(source) || WORDS.has(source.replaceAll(/["']/g, ''));
  return isPlain || (schemaAt(steps)?.type !== undefined && !SECRET_LIKE.test(source)) ? source : HIDDEN;
}

function isTold(name: string, bare: boolean): boolean {
  return toldName(name, bare) === name;
}

/** The path of a member as far as the schema names it; `whole`: as far as it may be told. */
export function toldPath(at: Member | undefined, whole: boolean): string {
  let path = '';
  for (const { key } of membersTo(at)) {
    if (typeof key === 'string' ? !isTold(key, !whole) : path === '') break;
    path = memberPath(path, key);
  }
  return path === '' ? 'document' : path;
}
