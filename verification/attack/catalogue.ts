/** The rows of the attack catalogue, and how specs name themselves after them. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it, type TestContext } from 'node:test';
import type { Figure } from './goals.ts';
import type { RowId } from './rows.ts';

export type { Figure } from './goals.ts';
export type { RowId } from './rows.ts';

/** Where a figure stands in the diagnostics of a test, before its JSON. */
export const FIGURE_MARK = 'figure ';
/** Between the rows of a test and its name. */
const NAME_MARK = ': ';
/** Begins the name of a test whose row another spec proves. */
const PROOF_MARK = 'proven by ';
const NAME = /^((?:[HBPXAODI]\d+ ?)+): (.*)$/s;
const PROOF = /^proven by (\S+), "(.*)"$/s;

/**
 * Set by `node verification/attack/main.ts`: `quick` or `long`. Otherwise this is a test run, which
 * does the same as the quick one.
 */
const RUN = process.env['ATTACK_RUN'];
export const isLongRun = RUN === 'long';

/** How often something is repeated: `quick` in a test run, `long` in the long run. */
export function times(quick: number, long: number): number {
  return isLongRun ? long : quick;
}

/**
 * One attack as a test. `rows` are written out in the call itself, so that what covers a row can be
 * read from the source: `attack('H2', 'a nominated proof is still read', async (t) => …)`.
 * `timeout` in milliseconds.
 */
export function attack(
  rows: RowId | readonly RowId[],
  name: string,
  body: (context: TestContext) => void | Promise<void>,
  options: { readonly timeout?: number } = {},
): void {
  it(`${[rows].flat().join(' ')}${NAME_MARK}${name}`, options, (context) => body(context));
}

/**
 * An attack that a spec elsewhere proves: `file` from the root of the project, `title` as it is
 * written there.
 */
export function proven(rows: RowId | readonly RowId[], file: string, title: string): void {
  attack(rows, `${PROOF_MARK}${file}, "${title}"`, () => {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const spelled = [`'${title.replaceAll("'", "\\'")}'`, `"${title}"`, `\`${title}\``];
    assert.ok(
      spelled.some((spelling) => source.includes(spelling)),
      `${file} has no test named ${title}`,
    );
  });
}

/** Reports a figure for the table of goals, which only `main.ts` prints. */
export function measured(context: TestContext, figure: Figure, value: number): void {
  if (RUN !== undefined) context.diagnostic(`${FIGURE_MARK}${JSON.stringify({ figure, value })}`);
}

/** Reads a diagnostic of a test back; undefined when it holds no figure. */
export function readFigure(message: string): { readonly figure: Figure; readonly value: number } | undefined {
  if (!message.startsWith(FIGURE_MARK)) return undefined;
  return JSON.parse(message.slice(FIGURE_MARK.length)) as { readonly figure: Figure; readonly value: number };
}

/** The parts of the name of an attack. */
export interface AttackName {
  readonly rows: readonly string[];
  readonly name: string;
  /** The spec that proves it, when it is a reference. */
  readonly proof?: { readonly file: string; readonly title: string };
}

/** Reads the name of a test back; undefined when it is no attack. */
export function attackName(title: string): AttackName | undefined {
  const [, rows, name] = NAME.exec(title) ?? [];
  if (rows === undefined || name === undefined) return undefined;
  const [, file, proven] = PROOF.exec(name) ?? [];
  const parts = { rows: rows.split(' '), name };
  return file === undefined || proven === undefined ? parts : { ...parts, proof: { file, title: proven } };
}
