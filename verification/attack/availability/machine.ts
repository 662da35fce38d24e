/** Measures which process used the machine. */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { cpuNs } from '../../bench/meter.ts';

/** Who used the machine during a measurement. */
export interface MachineUse {
  /** Cores that each named process kept busy. */
  readonly cores: Readonly<Record<string, number>>;
  /** Share of all cores that processes outside of this run kept busy, 0 to 1. */
  readonly othersShare: number;
}

/** Of /proc/stat, nanoseconds a tick. */
const TICK_NS = 10_000_000;

/** Starts to measure; the result reports the use since then. `named`: process ids. */
export function machineMeter(named: Readonly<Record<string, number>>): () => MachineUse {
  const own = family();
  const usedBy = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuNs(pid), 0);
  const each = Object.entries(named).map(([name, pid]) => ({ name, pid, before: cpuNs(pid) }));
  const before = { at: performance.now(), own: usedBy(own), all: busyNs() };
  return () => {
    const ns = (performance.now() - before.at) * 1_000_000;
    const others = busyNs() - before.all - (usedBy(own) - before.own);
    return {
      cores: Object.fromEntries(each.map(({ name, pid, before: used }) => [name, (cpuNs(pid) - used) / ns])),
      othersShare: Math.max(0, others / ns / availableParallelism()),
    };
  };
}

/** The child of this process that runs this file. @throws Error when there is none */
export function childThatRuns(file: string): number {
  const found = family().find(
    (pid) => pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(file),
  );
  if (found === undefined) throw new Error(`no process runs ${file}`);
  return found;
}

/** Nanoseconds that all cores have been busy. */
function busyNs(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]?.trim().split(/\s+/).slice(1).map(Number) ?? [];
  return (user + nice + system + irq + softirq) * TICK_NS;
}

/** This process and its children. */
function family(): readonly number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').trim();
  return [
    process.pid,
    ...children
      .split(' ')
      .filter((pid) => pid !== '')
      .map(Number),
  ];
}
