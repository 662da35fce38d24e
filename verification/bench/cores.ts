/** Pins contestant and load to cores of their own. */

import { spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

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
export function pinned(
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
