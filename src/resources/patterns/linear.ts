import { setFlagsFromString } from 'node:v8';
import { MATCH_BUDGET, spendSteps } from './budget.ts';
import { type PatternNode, PatternRefusal, readPattern } from './syntax.ts';

/**
 * Patterns that cost no more than length x steps, whatever text they meet. Two engines run them:
 *
 * - V8's linear engine (flag `l`) follows all ways through a pattern at once and never goes back.
 *   It refuses counts whose product over nesting exceeds 16, so counts are written out first:
 *   `a{2,3}` as `aa(?:a)?`. It is told by a flag of V8, and refuses whatever it cannot run; a mere
 *   fallback flag would go on backtracking there.
 * - The ordinary engine runs what has so few ways that going back is bounded by the pattern itself
 *   (`fewWays`).
 */
setFlagsFromString('--enable-experimental-regexp-engine');
// For the expressions of this program and its libraries, which have no `l`: after so many steps
// back V8 changes to that engine where it can. The default of 50,000 is 200 ms for `.*.*=` on 4,096
// characters, this is 5.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
setFlagsFromString('--regexp-backtracks-before-fallback=200');

/**
 * Most steps that a pattern may take for each character: then a text of 1,000 characters still fits
 * the budget of one input.
 */
export const MAX_STEPS = 2_400;
/** The engine compares with so many ranges of a class in the time of one step. */
const RANGES_A_STEP = 8;

/** A compiled pattern. */
interface LinearPattern {
  /** Whether it matches somewhere in `text`. */
  test(text: string): boolean;
  /**
   * Upper bound of the steps that `test` takes on so many UTF-16 code units; a step is about 10 ns.
   */
  cost(length: number): number;
  /** Length of the longest text that the budget of one document allows, UTF-16 code units. */
  readonly longest: number;
}

/** What patterns run on is not there. Its message says what to do. */
class LinearEngineMissing extends Error {}

let proven = false;

/**
 * Proves that the linear engine is there and is one: it answers, and it refuses what only an engine
 * that goes back could answer.
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

/** @throws SyntaxError for what that engine cannot run, or where there is none */
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

/** What is wrong with a pattern and what to write instead, or undefined. */
export function patternFault(pattern: string): string | undefined {
  try {
    compilePattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof PatternRefusal) return error.message;
    throw error;
  }
}

/** @throws PatternRefusal, LinearEngineMissing */
export function compilePattern(pattern: string): LinearPattern {
  proveLinearEngine();
  const tree = readPattern(pattern);
  const lengths = lengthsOf(tree);
  const whole = isAnchored(tree, '^') && isAnchored(tree, '$');
  const engine = fewWays(tree, pattern) ?? allWays(tree);
  return {
    // Of an anchored pattern a text too short or too long is no match, whatever stands in it.
    test: (text) =>
      !(whole && (text.length < lengths.least || text.length > lengths.most)) && engine.expression.test(text),
    cost: (length) => (whole && (length < lengths.least || length > lengths.most) ? 1 : (length + 1) * engine.steps),
    longest: Math.floor(MATCH_BUDGET / engine.steps) - 1,
  };
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
  return { expression: linearly(written(tree)), steps };
}

/**
 * Patterns on which the ordinary, far faster engine needs no more than length x (1 + what follows
 * its variable count): anchored at the start, single characters only, and at most one count that
 * varies.
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

/** Instructions of the linear engine: each of them runs at most once for each character. */
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
      // A fork and a jump for whatever may be left out.
      if (node.max === Number.POSITIVE_INFINITY) return node.min * body + body + 2;
      return Math.max(1, node.min * body + (node.max - node.min) * (body + 2));
    }
  }
}

/**
 * The pattern with its counts written out, in groups that capture nothing. Only for the linear
 * engine: the ordinary one takes long to compile it.
 */
function written(node: PatternNode): string {
  switch (node.kind) {
    case 'one':
      return writtenOne(node.text);
    case 'assertion':
      return node.text;
    case 'sequence':
      return node.parts.map((part) => (part.kind === 'choice' ? group(written(part)) : written(part))).join('');
    case 'choice':
      return node.branches.map(written).join('|');
    case 'repeat': {
      const { min, max } = node;
      const body = node.body.kind === 'one' ? written(node.body) : group(written(node.body));
      if (max === 0) return group('');
      if (max === Number.POSITIVE_INFINITY) return min === 0 ? `${body}*` : `${body.repeat(min - 1)}${body}+`;
      const optional = max - min;
      return body.repeat(min) + `(?:${body}`.repeat(optional) + ')?'.repeat(optional);
    }
  }
}

/**
 * As it stands, except for what could read differently beside what a group kept apart: `\x4(?:1)`,
 * `a{(?:2)}`.
 */
function writtenOne(text: string): string {
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

/** Lengths of the texts that a pattern can match as a whole, UTF-16 code units. */
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

/** Whether every match begins (`^`) or ends (`$`) where the text does. */
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
 * What the validator calls in the place of `RegExp`: linear, within the budget of the document.
 * @throws PatternRefusal
 */
export function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const { test, cost } = compilePattern(pattern);
  return {
    test(text) {
      spendSteps(cost(text.length));
      return test(text);
    },
    // The validator tells compiled patterns apart by their text.
    toString: () => pattern,
  };
}
