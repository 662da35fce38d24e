/** Pins contestant and load to cores of their own. */

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
 * A command that runs Node on one core. `taskset` replaces itself by Node, so the process id is
 * Node's.
 */
export function nodeOn(core: number | undefined, args: readonly string[]): readonly [string, readonly string[]] {
  if (core === undefined) return [process.execPath, args];
  return ['taskset', ['-c', String(core), process.execPath, ...args]];
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
