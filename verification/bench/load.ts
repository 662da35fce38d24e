/** Starts the load generator and gives it tasks. */

import { once } from 'node:events';
import { join } from 'node:path';
import type { Question } from './contestant.ts';
import { type Running, startProgram } from './program.ts';

/** A task of the load generator. */
export interface LoadTask {
  readonly origin: string;
  readonly question: Question;
  readonly connections: number;
  readonly seconds: number;
  /**
   * Refusals are counted and tried again at once, as are broken connections. Without it the first
   * one fails the task.
   */
  readonly retries?: boolean;
}

/**
 * The result of a task. Times in milliseconds, from writing a request to the last byte of its
 * answer.
 */
export interface LoadReport {
  /** Right answers. */
  readonly requests: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The first answer that was not the expected one; it ends the task. */
  readonly failure: string | undefined;
}

/** Requests in flight at any time, each on a connection of its own. */
export const CONNECTIONS = 32;
/** How long after its time a task may still take, milliseconds: proofs are signed before. */
const LATE_MS = 20_000;

/** The load generator, in a process of its own: its CPU counts for no contestant. */
export interface Load {
  /**
   * Sends requests for `seconds`. `begins` is called before the first one, when all proofs are
   * signed. @throws Error when an answer was not the expected one, when none came, or when aborted
   */
  fire(
    task: Omit<LoadTask, 'connections'> & { readonly connections?: number },
    signal: AbortSignal,
    begins?: () => void,
  ): Promise<LoadReport>;
  stop(): Promise<void>;
}

/** Starts the generator on a core. */
export function startLoad(core: number | undefined): Load {
  const program: Running = startProgram(core, { args: [join(import.meta.dirname, 'load-main.ts')], env: {} });
  return {
    async fire(asked, signal, begins) {
      const task: LoadTask = { connections: CONNECTIONS, ...asked };
      const deadline = AbortSignal.timeout(task.seconds * 1_000 + LATE_MS);
      const told = async (message: LoadTask | 'go'): Promise<LoadReport | 'ready'> => {
        const answer = once(program.child, 'message', { signal: AbortSignal.any([signal, deadline]) });
        program.child.send(message);
        return (await answer)[0];
      };
      let report = await told(task);
      if (report === 'ready') {
        begins?.();
        report = await told('go');
      }
      if (report === 'ready') throw new Error('the generator began twice');
      if (report.failure !== undefined) throw new Error(report.failure);
      if (report.requests === 0) throw new Error('no answer at all');
      return report;
    },
    stop: () => program.stop(),
  };
}
