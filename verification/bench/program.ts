/** Runs a contestant in a process of its own. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ended, terminate } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import type { Program } from './contestant.ts';

const START_DEADLINE_MS = 20_000;
const READY_POLL_MS = 50;
/** Time until SIGKILL follows. */
const STOP_GRACE_MS = 5_000;
const STDERR_TAIL_CHARS = 2_000;

/** A process of this run. */
export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  /**
   * Resolves when `url` answers anything but 503. @throws Error with its last output when it ended
   * or took too long.
   */
  ready(url: string, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a program on a core. Its stdout goes to the null device: writing a log has its normal
 * cost, but the log is not read. It ends with this process in any case.
 */
export function startProgram(
  core: number | undefined,
  { command: wanted = process.execPath, args, env }: Program,
): Running {
  const [command, commandArgs] = pinned(core, wanted, args);
  const child = spawn(command, commandArgs, {
    // A clean environment: NODE_OPTIONS of the developer's shell must not change what is measured.
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Ctrl-C reaches the parent process only, which ends all in order.
    detached: true,
  });
  leash(child);
  let lastWords = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    lastWords = (lastWords + text).slice(-STDERR_TAIL_CHARS);
  });
  child.on('error', (error) => {
    lastWords = error.message;
  });
  return {
    pid: child.pid ?? 0,
    child,
    async ready(url, signal) {
      const early = ended(child).then(({ code, signal: by }) => `ended with ${by ?? code}`);
      const settled = new AbortController();
      const asking = answers(url, AbortSignal.any([signal, settled.signal]));
      const problem = await Promise.race([early, asking]);
      // An ended program gets no more requests.
      settled.abort();
      await asking.catch(() => {});
      if (problem !== undefined) throw new Error(`${problem}\n${lastWords}`.trim());
    },
    async stop() {
      if (child.pid !== undefined) await terminate(child, STOP_GRACE_MS);
    },
  };
}

/** Undefined once it answers, else the reason. */
async function answers(url: string, signal: AbortSignal): Promise<string | undefined> {
  const deadline = performance.now() + START_DEADLINE_MS;
  let last = 'no listener';
  while (performance.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(START_DEADLINE_MS)]) });
      await response.arrayBuffer();
      if (response.status !== 503) return undefined;
      last = 'answers 503';
    } catch {
      signal.throwIfAborted();
    }
    await delay(READY_POLL_MS, undefined, { signal });
  }
  return `was not ready after ${START_DEADLINE_MS} ms (${last})`;
}

/** The cores: the contestant under test has its own. Both undefined: the system chooses. */
export interface Cores {
  readonly contestant: number | undefined;
  /** Load generator and backend. */
  readonly others: number | undefined;
}

/** The first two cores this process may use, when there are two and `taskset` is installed. */
export function chooseCores(): Cores {
  const [contestant, others] = hasTaskset() ? allowedCores() : [];
  return others === undefined ? { contestant: undefined, others: undefined } : { contestant, others };
}

/**
 * A command that runs a program on one core. `taskset` replaces itself by the program, so the
 * process id is the program's.
 */
function pinned(
  core: number | undefined,
  command: string,
  args: readonly string[],
): readonly [string, readonly string[]] {
  if (core === undefined) return [command, args];
  return ['taskset', ['-c', String(core), command, ...args]];
}

/** Moves a process that runs to one core. */
export function pin(core: number | undefined, pid: number): void {
  if (core !== undefined) spawnSync('taskset', ['-a', '-c', '-p', String(core), String(pid)]);
}

function hasTaskset(): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, 'taskset'), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** From a list such as `0-3,6`: a container may not have all cores of its machine. */
function allowedCores(): readonly number[] {
  const status = readFileSync('/proc/self/status', 'latin1');
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
  });
}
