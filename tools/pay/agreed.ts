/** Asks a person before money moves. */

import { createInterface } from 'node:readline/promises';
import { UsageError } from '../../src/cli/program.ts';

/**
 * @param terms what is agreed to
 * @param nothing what is told to a person who declines
 * @throws UsageError where there is no terminal, Error where the person declines
 */
export async function agreed(terms: string, question: string, nothing: string): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError(`${terms}\nthere is no terminal to ask on: add --yes`);
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await questions.question(`${terms}\n${question} [y/N] `);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new Error(nothing);
  } finally {
    questions.close();
  }
}
