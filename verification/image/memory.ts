/** What a container holds of its memory, as the kernel counts it. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const CGROUPS = '/sys/fs/cgroup';
const MIB = 1_048_576;

/** MiB of one moment, and of the worst one so far. */
export interface Memory {
  /** Resident memory of the gateway's process. */
  readonly rss: number;
  readonly rssPeak: number;
  /** What the limit counts: every process of the container, its tmpfs and cached files. */
  readonly counted: number;
  readonly countedPeak: number;
  readonly limit: number;
  readonly kills: number;
}

/** Files of a memory cgroup, of version 1 or 2. */
interface Cgroup {
  read(name: string): string;
  readonly names: { readonly now: string; readonly peak: string; readonly limit: string; readonly events: string };
}

const VERSION_1 = {
  now: 'memory.usage_in_bytes',
  peak: 'memory.max_usage_in_bytes',
  limit: 'memory.limit_in_bytes',
  events: 'memory.oom_control',
} as const;
const VERSION_2 = {
  now: 'memory.current',
  peak: 'memory.peak',
  limit: 'memory.max',
  events: 'memory.events',
} as const;

/** Of the container whose first process this is. */
export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const cgroup = cgroupOf(readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  const mib = (name: string): number => Math.round(Number(cgroup.read(name)) / MIB);
  return {
    rss: kilobytes(status, 'VmRSS'),
    rssPeak: kilobytes(status, 'VmHWM'),
    counted: mib(cgroup.names.now),
    countedPeak: mib(cgroup.names.peak),
    limit: mib(cgroup.names.limit),
    kills: Number(/^oom_kill (\d+)$/m.exec(cgroup.read(cgroup.names.events))?.[1] ?? 0),
  };
}

/** Where the memory of a process is counted, from its /proc/PID/cgroup. */
export function memoryFolder(cgroups: string): string {
  const first = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\S+)$/m.exec(cgroups)?.[1];
  if (first !== undefined) return join(CGROUPS, 'memory', first);
  return join(CGROUPS, /^0::(\S+)$/m.exec(cgroups)?.[1] ?? '');
}

function cgroupOf(cgroups: string): Cgroup {
  const folder = memoryFolder(cgroups);
  return {
    read: (name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim() : 'NaN'),
    names: folder.startsWith(join(CGROUPS, 'memory')) ? VERSION_1 : VERSION_2,
  };
}

function kilobytes(status: string, name: string): number {
  return Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024);
}
