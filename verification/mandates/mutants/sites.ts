/** Finds the checks in a source file that a mutant can leave out. */

import { parseAst } from 'rolldown/parseAst';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

const FLIPPED: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
};

/**
 * Every way to remove one check from a source file: a condition of an exit becomes false, a call
 * without a used result or one side of `&&` and `||` is removed, a comparison is reversed or moved
 * by one. Types are skipped: they do not run.
 */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const found: Omit<Mutant, 'name'>[] = [];
  const slice = ({ start, end }: Node): string => source.slice(start, end);
  const add = ({ start, end }: Node, replacement: string): void => {
    const line = source.slice(0, start).split('\n').length;
    const was = source.slice(start, end).replace(/\s+/g, ' ');
    found.push({ file, start, end, replacement, was, line, whole: replacement === 'false' || replacement === ';' });
  };
  walk(parseAst(source, { lang: 'ts' }) as unknown as Node, (node) => {
    if (node.type === 'IfStatement' && leaves(node['consequent'] as Node)) add(node['test'] as Node, 'false');
    if (node.type === 'ExpressionStatement' && isBareCall(node['expression'] as Node)) add(node, ';');
    if (node.type === 'ConditionalExpression') {
      add(node, `(${slice(node['consequent'] as Node)})`);
      add(node, `(${slice(node['alternate'] as Node)})`);
    }
    if (node.type === 'LogicalExpression' && node['operator'] !== '??') {
      add(node, `(${slice(node['left'] as Node)})`);
      add(node, `(${slice(node['right'] as Node)})`);
    }
    const flipped = node.type === 'BinaryExpression' ? FLIPPED[String(node['operator'])] : undefined;
    if (flipped !== undefined) add(node, `(${slice(node['left'] as Node)} ${flipped} ${slice(node['right'] as Node)})`);
  });
  return named(found);
}

/** Equal changes of equal texts get numbers in their order. */
function named(found: readonly Omit<Mutant, 'name'>[]): readonly Mutant[] {
  const seen = new Map<string, number>();
  return found.map((one) => {
    const text = `${one.file}: ${one.was} => ${one.replacement.replace(/\s+/g, ' ')}`;
    const count = (seen.get(text) ?? 0) + 1;
    seen.set(text, count);
    return { ...one, name: count === 1 ? text : `${text} #${count}` };
  });
}

/** Whether it throws, returns, continues or breaks, as a failing check does. */
function leaves(statement: Node): boolean {
  if (statement.type !== 'BlockStatement') return /^(?:Throw|Return|Continue|Break)Statement$/.test(statement.type);
  const last = (statement['body'] as readonly Node[]).at(-1);
  return last !== undefined && leaves(last);
}

function isBareCall(node: Node): boolean {
  return node.type === 'CallExpression' || (node.type === 'AwaitExpression' && isBareCall(node['argument'] as Node));
}

function walk(node: Node, onNode: (node: Node) => void): void {
  if (node.type.startsWith('TS') && node.type !== 'TSAsExpression' && node.type !== 'TSSatisfiesExpression') return;
  onNode(node);
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? (value as readonly unknown[]) : [value])
      if (isNode(child)) walk(child, onNode);
}

function isNode(value: unknown): value is Node {
  return value !== null && typeof value === 'object' && 'type' in value && 'start' in value;
}

/** A part of a file and its replacement. */
export interface Mutant {
  readonly file: string;
  /** Offsets of the replaced text, UTF-16. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** The replaced text, in one line. */
  readonly was: string;
  readonly line: number;
  /** Whether all of a check or of a call is left out, not a part of it. */
  readonly whole: boolean;
  /** File, old and new text, and a number for equal ones: it survives changes elsewhere. */
  readonly name: string;
}

/** The file with that one change. */
export function applied(source: string, { start, end, replacement }: Mutant): string {
  return `${source.slice(0, start)}${replacement}${source.slice(end)}`;
}
