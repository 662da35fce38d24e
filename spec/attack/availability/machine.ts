import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { cpuNs } from '../../bench/meter.ts';

/** Who used the machine during a measurement. */
export interface MachineUse {
  /** Cores that the gateway kept busy. */
  readonly gatewayCores: number;
  /** Share of all cores that processes outside of this run kept busy, 0 to 1. */
  readonly strangersShare: number;
}

/** Of /proc/stat, nanoseconds a tick. */
const TICK_NS = 10_000_000;

/** Starts to measure; the result says what was used since. */
export function machineMeter(gateway: number): () => MachineUse {
  const ours = family();
  const usedBy = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuNs(pid), 0);
  const before = { at: performance.now(), gateway: cpuNs(gateway), ours: usedBy(ours), all: busyNs() };
  return () => {
    const ns = (performance.now() - before.at) * 1_000_000;
    const strangers = busyNs() - before.all - (usedBy(ours) - before.ours);
    return {
      gatewayCores: (cpuNs(gateway) - before.gateway) / ns,
      strangersShare: Math.max(0, strangers / ns / availableParallelism()),
    };
  };
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
