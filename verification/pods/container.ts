/** A container of an emulated pod: a process that is started again and again. */

import { type ChildProcess, spawn } from 'node:child_process';
import { COMPILE_CACHE } from '../../spec/support/compile-cache.ts';
import type { Container } from '../../src/sidecar/injection/pod.ts';
import { type Ending, ended } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import type { Image } from './node.ts';

const OUTPUT_TAIL_CHARS = 16_384;

/** One container and the process that it has now. */
export interface ContainerRun {
  readonly name: string;
  readonly spec: Container;
  /** How often it was started. */
  readonly starts: number;
  running(): boolean;
  start(): void;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process of now has ended. */
  exited(): Promise<Ending>;
  /** The end of what all its processes wrote. */
  output(): string;
}

export function containerRun(spec: Container, image: Image): ContainerRun {
  let child: ChildProcess | undefined;
  let starts = 0;
  let tail = '';
  const keep = (text: Buffer): void => {
    tail = (tail + text.toString()).slice(-OUTPUT_TAIL_CHARS);
  };
  const running = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    ...{ name: spec.name, spec, running },
    get starts() {
      return starts;
    },
    start() {
      const { args, env = {} } = image(spec, starts);
      starts += 1;
      const own = Object.fromEntries((spec.env ?? []).map(({ name, value = '' }) => [name, value]));
      child = spawn(process.execPath, args, {
        env: { PATH: process.env['PATH'] ?? '', ...COMPILE_CACHE, ...env, ...own },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
      child.stdout?.on('data', keep);
      child.stderr?.on('data', keep);
      leash(child);
    },
    signal: (signal) => void child?.kill(signal),
    exited: () => (child === undefined ? Promise.resolve({ code: 0, signal: null }) : ended(child)),
    output: () => tail,
  };
}
