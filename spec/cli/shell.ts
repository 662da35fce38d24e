/**
 * Runs command lines of `acg` one after another in one process, as the entry of a checkout does: a
 * process for each would take most of the time of a spec.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { leash } from '../../tools/local-world/leash.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import type { CommandRun } from './acg.ts';

/** What is run. */
export interface Line {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  /** Whether it takes its output for a terminal, one without colours. */
  readonly isTerminal: boolean;
}

/** What became of it. */
export interface LineEnd {
  readonly code: number;
  readonly text: string;
  readonly errors: string;
}

/** The end of a line, with its output as a whole too. */
export interface LineRun extends Omit<CommandRun, 'output'> {
  readonly text: string;
}

export interface Shell {
  /** Runs one line in a folder, with this environment alone. */
  run(folder: string, words: readonly string[], more?: Partial<Pick<Line, 'env' | 'isTerminal'>>): Promise<LineRun>;
}

/** Starts it; `ends` ends it. */
export function openShell(ends: AsyncDisposableStack): Shell {
  const child = ends.adopt(
    fork(join(import.meta.dirname, 'shell-main.ts'), {
      env: { ...COMPILE_CACHE },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    }),
    (started) => void started.kill('SIGKILL'),
  );
  leash(child);
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(folder, words, { env = {}, isTerminal = false } = {}) {
      const run = last.then(() => ended(child, { words, env, folder, isTerminal }));
      last = run;
      return run;
    },
  };
}

async function ended(child: ChildProcess, line: Line): Promise<LineRun> {
  const answered = new AbortController();
  const gone = once(child, 'exit', answered).then(() => {
    throw new Error(`the shell ended in: ${line.words.join(' ')}`);
  });
  child.send(line);
  try {
    const [{ code, text, errors }] = (await Promise.race([once(child, 'message', answered), gone])) as [LineEnd];
    return { code, lines: text.split('\n').filter(Boolean), text, errors };
  } finally {
    gone.catch(() => undefined);
    answered.abort();
  }
}
