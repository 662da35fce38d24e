/** Reads CPU time and memory of a process; the middle and the tail of what was measured. */

import { readdirSync, readFileSync } from 'node:fs';

/** The system does not report the CPU of a process, so no comparison is possible. */
export class CannotMeasure extends Error {
  constructor(cause: unknown) {
    super('CPU a request is read from /proc/<pid>/task/*/schedstat (Linux); this system does not offer it', { cause });
    this.name = 'CannotMeasure';
  }
}

/** Nanoseconds on a core so far of a process and all processes below it, as nginx has. */
export function treeCpuNs(pid: number): number {
  return processesBelow(pid).reduce((total, one) => total + cpuNs(one), 0);
}

/** The process itself first. Only itself where the kernel lists no children. */
function processesBelow(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => childrenOf(`/proc/${pid}/task/${task}/children`));
  return [pid, ...children.flatMap(processesBelow)];
}

function childrenOf(file: string): readonly number[] {
  try {
    return readFileSync(file, 'latin1').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/**
 * Nanoseconds that all threads of a process have been on a core so far, in user and system mode.
 * The time of an ended thread is lost; Node's pool and V8's helpers live as long as their process.
 */
function cpuNs(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  let total = 0;
  for (const task of readdirSync(tasks)) {
    try {
      total += Number(readFileSync(`${tasks}/${task}/schedstat`, 'latin1').split(' ', 1)[0]);
    } catch (error) {
      // A thread that ended since the directory was read.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && (error as NodeJS.ErrnoException).code !== 'ESRCH')
        throw error;
    }
  }
  return total;
}

/** Resident memory of a process, bytes. */
export function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return Number(kibibytes ?? 0) * 1_024;
}

/** @throws CannotMeasure when the counters are missing or do not change. */
export function requireMeter(): void {
  let used: number;
  try {
    used = cpuNs(process.pid);
  } catch (error) {
    throw new CannotMeasure(error);
  }
  // This process has used CPU by now: a kernel without scheduler statistics reports 0.
  if (!(used > 0)) throw new CannotMeasure('the counters do not change');
}

/** The value below which `share` (0 to 1) of the sorted values lie; NaN when there are none. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const rank = Math.ceil(share * sorted.length);
  return sorted[Math.min(sorted.length - 1, Math.max(0, rank - 1))] ?? Number.NaN;
}

/** The middle value, or the mean of the two middle ones; NaN when there are none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile between the two nearest values; NaN when there are none. `share`: 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const lower = sorted[Math.floor(place)] ?? Number.NaN;
  const upper = sorted[Math.ceil(place)] ?? Number.NaN;
  return lower + (upper - lower) * (place - Math.floor(place));
}
