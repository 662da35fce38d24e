/** How many processors this process may use: its cgroup's quota, else what the machine has. */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { posix } from 'node:path';

const ROOT = '/sys/fs/cgroup';
/** Where version 1 mounts its controller. */
const CPU_V1 = ['cpu', 'cpu,cpuacct'] as const;

/** What the text files of the system are read with; undefined for one that is not there. */
type ReadText = (path: string) => string | undefined;

/**
 * Whole processors, at least 1. A part of one counts as none: one more process than the quota
 * carries makes the kernel stop all of them for the rest of each period, and the garbage collection
 * and the primary need some of the quota as well.
 */
export function wholeCpus(read: ReadText = textOf, machine: () => number = availableParallelism): number {
  return Math.max(1, Math.floor(Math.min(cpuQuota(read) ?? Number.POSITIVE_INFINITY, machine())));
}

/**
 * The quota in processors, the smallest of the cgroup and those above it; undefined without one.
 * Inside of a container its own cgroup is the root of the mount, whatever its path is called.
 */
export function cpuQuota(read: ReadText = textOf): number | undefined {
  const quotas: number[] = [];
  for (const line of (read('/proc/self/cgroup') ?? '').split('\n')) {
    const [, hierarchy, controllers = '', path = ''] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (hierarchy === '0' && controllers === '')
      for (const folder of upwards(path)) add(quotas, quotaV2(read(`${ROOT}${folder}/cpu.max`)));
    else if (controllers.split(',').includes('cpu'))
      for (const name of CPU_V1)
        for (const folder of upwards(path))
          add(
            quotas,
            quotaV1((file) => read(`${ROOT}/${name}${folder}/cpu.cfs_${file}_us`)),
          );
  }
  return quotas.length === 0 ? undefined : Math.min(...quotas);
}

/** The path of a cgroup and of those above it, the last one empty for the root. */
function upwards(path: string): readonly string[] {
  const folders: string[] = [];
  for (let folder = path; folder !== '/' && folder !== '.'; folder = posix.dirname(folder)) folders.push(folder);
  return [...folders, ''];
}

/** `200000 100000` is two processors, `max 100000` no quota. */
function quotaV2(text: string | undefined): number {
  const [quota = '', period = ''] = (text ?? '').trim().split(' ');
  return Number(quota || Number.NaN) / Number(period || Number.NaN);
}

/** The quota is -1 where there is none. */
function quotaV1(file: (name: 'quota' | 'period') => string | undefined): number {
  return Number(file('quota') ?? Number.NaN) / Number(file('period') ?? Number.NaN);
}

function add(quotas: number[], quota: number): void {
  if (quota > 0 && Number.isFinite(quota)) quotas.push(quota);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
