/** Starts the load generator and gives it tasks. */

import { once } from 'node:events';
import { join } from 'node:path';
import { startProgram } from '../../bench/program.ts';
import type { LoadReport, LoadTask, LoadWord } from './load-task.ts';

/** How long after its time a task may still take, milliseconds. */
const LATE_MS = 30_000;
/** How long signing the proofs of a task may take, milliseconds. */
const PREPARE_MS = 120_000;

/** The load generator, in a process of its own so that nothing else delays its clock. */
export interface Flood {
  readonly pid: number;
  /**
   * Connects and signs the proofs of the task. The result begins it. @throws Error when that failed
   * or took too long
   */
  prepare(task: LoadTask): Promise<() => Promise<LoadReport>>;
  /** Both at once. @throws Error as above, or when no report came in time */
  run(task: LoadTask): Promise<LoadReport>;
  stop(): Promise<void>;
}

/** Starts the generator, on a core when one is named. */
export function startFlood(core: number | undefined): Flood {
  const program = startProgram(core, { args: [join(import.meta.dirname, 'load-main.ts')], env: {} });
  const answerTo = async (message: LoadTask | 'go', withinMs: number): Promise<LoadWord> => {
    const answer = once(program.child, 'message', { signal: AbortSignal.timeout(withinMs) });
    program.child.send(message);
    const [word] = (await answer) as [LoadWord];
    if (word.word === 'failed') throw new Error(word.why);
    return word;
  };
  const prepare: Flood['prepare'] = async (task) => {
    await answerTo(task, PREPARE_MS);
    return async function begin() {
      const answer = await answerTo('go', task.seconds * 1_000 + LATE_MS);
      if (answer.word !== 'done') throw new Error(`the load generator answered ${answer.word}`);
      return answer.report;
    };
  };
  return {
    pid: program.pid,
    prepare,
    run: async (task) => (await prepare(task))(),
    stop: () => program.stop(),
  };
}
