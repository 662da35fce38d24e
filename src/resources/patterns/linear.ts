/**
 * Compiles patterns to expressions whose cost is at most length x steps for every text. Two engines
 * run them:
 *
 * - V8's linear engine (flag `l`) follows all ways through a pattern at once and never backtracks.
 *   It refuses counts whose product over nesting exceeds 16, so counts are written out first:
 *   `a{2,3}` as `aa(?:a)?`. A flag of V8 enables it. It refuses patterns that it cannot run; V8's
 *   flag for a mere fallback would backtrack on them.
 * - The ordinary engine runs patterns with so few ways that the pattern itself bounds backtracking
 *   (`fewWays`).
 */

import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--enable-experimental-regexp-engine');
// For expressions of this program and its libraries, which have no flag `l`: after so many
// backtracks V8 changes to the linear engine where it can. For `.*.*=` on 4,096 characters the
// default of 50,000 takes 200 ms, this takes 5 ms.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
setFlagsFromString('--regexp-backtracks-before-fallback=200');

/** Most steps of a pattern for each character: a text of 1,000 characters then fits the budget. */
export const MAX_STEPS = 2_400;
/** Ranges of a class that the engine compares with in the time of one step. */
const RANGES_A_STEP = 8;

/** Whether the linear engine has been proven in this process. */
let proven = false;

interface LinearPattern {
  /** Whether the pattern matches somewhere in `text`. */
  test(text: string): boolean;
  /** Upper bound of the steps of `test` on so many UTF-16 code units; a step takes about 10 ns. */
  cost(length: number): number;
  /** Longest text that the budget of one document allows, UTF-16 code units. */
  readonly longest: number;
}

/** This Node cannot run patterns in linear time. */
class LinearEngineMissing extends Error {}

/** @throws PatternRefusal, LinearEngineMissing */
export function compilePattern(pattern: string): LinearPattern {
  proveLinearEngine();
  const tree = readPattern(pattern);
  const lengths = lengthsOf(tree);
  const whole = isAnchored(tree, '^') && isAnchored(tree, '$');
  const engine = fewWays(tree, pattern) ?? allWays(tree);
  return {
    // A text that is too short or too long for an anchored pattern is not tried.
    test: (text) =>
      !(whole && (text.length < lengths.least || text.length > lengths.most)) && engine.expression.test(text),
    cost: (length) => (whole && (length < lengths.least || length > lengths.most) ? 1 : (length + 1) * engine.steps),
    longest: Math.floor(MATCH_BUDGET / engine.steps) - 1,
  };
}

/** Replaces `RegExp` in the validator. @throws PatternRefusal; `test` throws MatchBudgetError */
export function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const { test, cost } = compilePattern(pattern);
  return {
    test(text) {
      spendSteps(cost(text.length));
      return test(text);
    },
    // The validator caches compiled patterns by their text.
    toString: () => pattern,
  };
}

/** The fault of a pattern with its remedy, or undefined. */
export function patternFault(pattern: string): string | undefined {
  try {
    compilePattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof PatternRefusal) return error.message;
    throw error;
  }
}

interface Engine {
  readonly expression: RegExp;
  /** For each character. */
  readonly steps: number;
}

function allWays(tree: PatternNode): Engine {
  const steps = stepsOf(tree);
  if (!(steps <= MAX_STEPS)) {
    const count = Number.isFinite(steps) ? Math.ceil(steps).toLocaleString('en') : 'countless';
    throw new PatternRefusal(
      `takes ${count} steps for each character, at most ${MAX_STEPS.toLocaleString('en')}: shorten the counts, or use maxLength`,
    );
  }
  return { expression: linearly(sourceOf(tree)), steps };
}

/**
 * For some patterns the ordinary, far faster engine takes at most length x (1 + the steps after the
 * variable count): those with an anchor at the start, single characters, and at most one variable
 * count.
 */
function fewWays(tree: PatternNode, pattern: string): Engine | undefined {
  const [start, ...parts] = tree.kind === 'sequence' ? tree.parts : [tree];
  if (start?.kind !== 'assertion' || start.text !== '^') return undefined;
  const plain = parts.every(({ kind }) => kind === 'one' || kind === 'assertion' || kind === 'repeat');
  const counted = parts.flatMap((part, index) => (part.kind === 'repeat' ? [{ part, index }] : []));
  if (!plain || counted.some(({ part }) => part.body.kind !== 'one')) return undefined;
  const [variable, ...more] = counted.filter(({ part }) => part.min !== part.max);
  if (more.length > 0) return undefined;
  const expression = new RegExp(pattern);
  if (variable === undefined) return { expression, steps: 1 };
  const after = parts.slice(variable.index + 1).reduce((sum, part) => sum + stepsOf(part), 0);
  if (after > MAX_STEPS) return undefined;
  return { expression, steps: 1 + after };
}

/** Instructions of the linear engine; each runs at most once for each character. */
function stepsOf(node: PatternNode): number {
  switch (node.kind) {
    case 'one':
      return 1 + Math.floor(node.ranges / RANGES_A_STEP);
    case 'assertion':
      return 1;
    case 'sequence':
      return Math.max(1, sum(node.parts.map(stepsOf)));
    case 'choice':
      return sum(node.branches.map(stepsOf)) + 2 * (node.branches.length - 1);
    case 'repeat': {
      const body = stepsOf(node.body);
      // Every optional copy has a fork and a jump.
      if (node.max === Number.POSITIVE_INFINITY) return node.min * body + body + 2;
      return Math.max(1, node.min * body + (node.max - node.min) * (body + 2));
    }
  }
}

/**
 * The pattern with its counts written out, in groups that do not capture. Only for the linear
 * engine: the ordinary one takes long to compile it.
 */
function sourceOf(node: PatternNode): string {
  switch (node.kind) {
    case 'one':
      return sourceOfOne(node.text);
    case 'assertion':
      return node.text;
    case 'sequence':
      return node.parts.map((part) => (part.kind === 'choice' ? group(sourceOf(part)) : sourceOf(part))).join('');
    case 'choice':
      return node.branches.map(sourceOf).join('|');
    case 'repeat': {
      const { min, max } = node;
      const body = node.body.kind === 'one' ? sourceOf(node.body) : group(sourceOf(node.body));
      if (max === 0) return group('');
      if (max === Number.POSITIVE_INFINITY) return min === 0 ? `${body}*` : `${body.repeat(min - 1)}${body}+`;
      const optional = max - min;
      return body.repeat(min) + `(?:${body}`.repeat(optional) + ')?'.repeat(optional);
    }
  }
}

/** Escapes signs that mean something else once the group behind is gone: `\x4(?:1)`, `a{(?:2)}`. */
function sourceOfOne(text: string): string {
  if (text === '\\0') return '\\x00';
  if (text === '\\x' || text === '\\u') return text.slice(1);
  return ['{', '}', ']'].includes(text) ? `\\${text}` : text;
}

function group(text: string): string {
  return `(?:${text})`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

interface Lengths {
  readonly least: number;
  readonly most: number;
}

/** Lengths of the texts that a pattern matches, UTF-16 code units. */
function lengthsOf(node: PatternNode): Lengths {
  switch (node.kind) {
    case 'one':
      return { least: 1, most: 1 };
    case 'assertion':
      return { least: 0, most: 0 };
    case 'sequence': {
      const parts = node.parts.map(lengthsOf);
      return { least: sum(parts.map(({ least }) => least)), most: sum(parts.map(({ most }) => most)) };
    }
    case 'choice': {
      const branches = node.branches.map(lengthsOf);
      return {
        least: Math.min(...branches.map(({ least }) => least)),
        most: Math.max(...branches.map(({ most }) => most)),
      };
    }
    case 'repeat': {
      const { least, most } = lengthsOf(node.body);
      return { least: least * node.min, most: most === 0 ? 0 : most * node.max };
    }
  }
}

/** Whether every match begins (`^`) or ends (`$`) with the text. */
function isAnchored(node: PatternNode, anchor: '^' | '$'): boolean {
  switch (node.kind) {
    case 'assertion':
      return node.text === anchor;
    case 'sequence': {
      const outer = anchor === '^' ? node.parts[0] : node.parts.at(-1);
      return outer !== undefined && isAnchored(outer, anchor);
    }
    case 'choice':
      return node.branches.every((branch) => isAnchored(branch, anchor));
    case 'repeat':
      return node.min > 0 && isAnchored(node.body, anchor);
    case 'one':
      return false;
  }
}

/**
 * Proves that the engine is linear: it answers, and refuses patterns that only the other one runs.
 * @throws LinearEngineMissing
 */
export function proveLinearEngine(): void {
  if (proven) return;
  proven = answersRightly() && ['(?=a)', '(a)\\1', 'a{17}'].every(isRefused);
  if (!proven)
    throw new LinearEngineMissing(
      `this Node (${process.version}) has no engine that runs patterns in linear time: use the Node of the image, without V8 options of your own`,
    );
}

/** @throws SyntaxError for a pattern that the linear engine cannot run, or without that engine */
function linearly(pattern: string): RegExp {
  return new RegExp(pattern, 'l');
}

function answersRightly(): boolean {
  try {
    const ambiguous = linearly('^(?:a|a)*$');
    return ambiguous.test('aaa') && !ambiguous.test('aab');
  } catch {
    return false;
  }
}

function isRefused(pattern: string): boolean {
  try {
    return linearly(pattern) === undefined;
  } catch {
    return true;
  }
}

/** A pattern without captures. */
type PatternNode =
  /** Consumes one UTF-16 code unit; the engine compares it with at most `ranges` ranges. */
  | { readonly kind: 'one'; readonly text: string; readonly ranges: number }
  | { readonly kind: 'assertion'; readonly text: '^' | '$' | '\\b' | '\\B' }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly branches: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly body: PatternNode; readonly min: number; readonly max: number };

/** Why a pattern is refused; the message completes "pattern …". */
class PatternRefusal extends Error {}

/** Longest pattern, UTF-16 code units; this also bounds the depth of its groups. */
const MAX_PATTERN_LENGTH = 1_024;

const INSTEAD = 'split it into two properties, or use minLength and maxLength beside a simpler pattern';
const UNICODE_MODE =
  'must not use \\p{…} or \\u{…}, which need Unicode mode: list the characters in a class, such as [A-Za-zÀ-ÿ]';
const LOOK_AROUND = /^\(\?<?[=!]/;
const GROUP = /^\((?:\?:|\?<[^>]*>|(?!\?))/;
const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/;
const MEMBER = /^(?:\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[\s\S])|[\s\S])/;
const SURROGATE = /[\ud800-\udfff]|\\u[dD][89a-fA-F]/;
/** How many ranges of code units `\d` and its likes have. */
const ESCAPED_CLASSES: Readonly<Record<string, number>> = { d: 1, D: 2, w: 4, W: 5, s: 10, S: 11 };

/** @throws PatternRefusal */
function readPattern(pattern: string): PatternNode {
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new PatternRefusal(`must not be longer than ${MAX_PATTERN_LENGTH} characters`);
  if (SURROGATE.test(pattern)) throw new PatternRefusal('must not have characters beyond U+FFFF');
  try {
    new RegExp(pattern);
  } catch {
    throw new PatternRefusal('must be a regular expression (ECMAScript)');
  }
  return new Reader(pattern).read();
}

/** Reads a well-formed pattern. */
class Reader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  read(): PatternNode {
    const node = this.#choice();
    // An unmatched closing parenthesis is a syntax error without the flag `u`, too.
    if (this.#at < this.#pattern.length) throw new PatternRefusal('must be a regular expression (ECMAScript)');
    return node;
  }

  #choice(): PatternNode {
    const branches = [this.#sequence()];
    while (this.#next() === '|') {
      this.#at += 1;
      branches.push(this.#sequence());
    }
    return branches.length === 1 && branches[0] !== undefined ? branches[0] : { kind: 'choice', branches };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#pattern.length && this.#next() !== '|' && this.#next() !== ')')
      parts.push(this.#quantified(this.#term()));
    return { kind: 'sequence', parts };
  }

  #quantified(body: PatternNode): PatternNode {
    const match = QUANTIFIER.exec(this.#pattern.slice(this.#at));
    if (match === null) return body;
    this.#at += match[0].length;
    const [text, low, comma, high] = match;
    if (low === undefined) {
      const max = text.startsWith('?') ? 1 : Number.POSITIVE_INFINITY;
      return { kind: 'repeat', body, min: text.startsWith('+') ? 1 : 0, max };
    }
    const max = comma === '' ? Number(low) : high === '' ? Number.POSITIVE_INFINITY : Number(high);
    return { kind: 'repeat', body, min: Number(low), max };
  }

  #term(): PatternNode {
    const char = this.#next();
    if (char === '(') return this.#group();
    if (char === '[') return this.#class();
    if (char === '\\') return this.#escape();
    this.#at += 1;
    if (char === '^' || char === '$') return { kind: 'assertion', text: char };
    return { kind: 'one', text: char, ranges: char === '.' ? 4 : 1 };
  }

  #group(): PatternNode {
    const rest = this.#pattern.slice(this.#at);
    if (LOOK_AROUND.test(rest)) throw new PatternRefusal(`must not use look-around: ${INSTEAD}`);
    const opening = GROUP.exec(rest)?.[0];
    if (opening === undefined)
      throw new PatternRefusal('must not use modifiers such as (?i:…): write both cases, as in [Aa]');
    this.#at += opening.length;
    const inner = this.#choice();
    this.#at += 1;
    return inner;
  }

  #class(): PatternNode {
    const start = this.#at;
    // The complement of a class has at most one range more than the class.
    let ranges = 1;
    this.#at += this.#ahead(2) === '[^' ? 2 : 1;
    while (this.#next() !== ']') {
      const first = this.#member();
      ranges += first;
      if (this.#next() !== '-' || this.#ahead(2) === '-]') continue;
      this.#at += 1;
      const last = this.#member();
      // Without the `u` flag `[\w-.]` is three members.
      if (first > 1 || last > 1) ranges += last + 1;
    }
    this.#at += 1;
    return { kind: 'one', text: this.#pattern.slice(start, this.#at), ranges };
  }

  /** Skips one member of a class and gives the number of its ranges. */
  #member(): number {
    const ahead = this.#ahead(6);
    if (/^\\(?:[pP]|u\{)/.test(ahead)) throw new PatternRefusal(UNICODE_MODE);
    const text = MEMBER.exec(ahead)?.[0] ?? ahead;
    this.#at += text.length;
    return ESCAPED_CLASSES[text.slice(1)] ?? 1;
  }

  #escape(): PatternNode {
    const ahead = this.#ahead(6);
    if (/^\\(?:[pP]|u\{)/.test(ahead)) throw new PatternRefusal(UNICODE_MODE);
    if (/^\\[1-9k]/.test(ahead)) throw new PatternRefusal(`must not use a back-reference: ${INSTEAD}`);
    if (/^\\0\d/.test(ahead)) throw new PatternRefusal('must not use an octal escape: write \\x00 to \\x3f');
    if (/^\\c(?![A-Za-z])/.test(ahead)) throw new PatternRefusal('must not have \\c without a letter: write \\\\c');
    if (/^\\[bB]/.test(ahead)) {
      this.#at += 2;
      return { kind: 'assertion', text: ahead.startsWith('\\b') ? '\\b' : '\\B' };
    }
    const text = MEMBER.exec(ahead)?.[0] ?? ahead;
    this.#at += text.length;
    return { kind: 'one', text, ranges: ESCAPED_CLASSES[text.slice(1)] ?? 1 };
  }

  #next(): string {
    return this.#pattern[this.#at] ?? '';
  }

  #ahead(length: number): string {
    return this.#pattern.slice(this.#at, this.#at + length);
  }
}

/** Steps that one document may take; they take about 25 ms. */
export const MATCH_BUDGET = 2_500_000;

/** The budget is spent. Thrown, because with "no match" `not` would accept an untried text. */
export class MatchBudgetError extends Error {}

/** Steps left for the document that is validated; without one each text has the whole budget. */
let left: number | undefined;

/** Gives `validate`, which is synchronous, the budget of one document. @throws MatchBudgetError */
export function withMatchBudget<T>(validate: () => T): T {
  const outer = left;
  left = MATCH_BUDGET;
  try {
    return validate();
  } finally {
    left = outer;
  }
}

/** Takes steps from the budget, before a test runs them. @throws MatchBudgetError */
export function spendSteps(steps: number): void {
  const after = (left ?? MATCH_BUDGET) - steps;
  if (left !== undefined) left = after;
  if (after < 0) throw new MatchBudgetError();
}
