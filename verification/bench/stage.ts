/** The shared backend, facilitator and folder of all contestants, and their start. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../spec/support/ports.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { type Contestant, NotAvailable, type Surroundings } from './contestant.ts';
import { type Load, startLoad } from './load.ts';
import { type Cores, chooseCores, pin, type Running, startProgram } from './program.ts';
import type { Measurement } from './verdict.ts';

/** The gateways that are measured. */
export interface Entries {
  /** The entry of the gateway: its bundle, or src/main.ts. */
  gateway(): Promise<string>;
  /** The entry of the same gateway with a rail that settles nothing. */
  noop(): Promise<string>;
}

/** A contestant that has started. */
export interface Started {
  readonly contestant: Contestant;
  readonly origin: string;
  readonly program: Running;
}

/** The options of the stage. */
interface StageOptions {
  readonly cores: Cores;
  readonly signal: AbortSignal;
  readonly entries: Entries;
}

/** Calls of the facilitator so far. */
interface FacilitatorCounts {
  readonly verify: number;
  readonly settle: number;
}

/** Shared by all contestants: the backend, a facilitator that moves nothing, a folder. */
export interface Stage {
  readonly backendUrl: string;
  readonly facilitatorUrl: string;
  /**
   * Starts a contestant, unless its process runs already. @throws NotAvailable; Error with the last
   * output of one that did not start
   */
  start(contestant: Contestant): Promise<Started>;
  facilitatorCounts(): Promise<FacilitatorCounts>;
}

type Process = Omit<Started, 'contestant'>;

/** The sources, or the bundle that GATEWAY_ENTRY names; no gateway with another rail. */
export function entriesOfSources(): Entries {
  const entry = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
  return {
    gateway: async () => entry,
    noop: async () => {
      throw new NotAvailable('no gateway with a rail that settles nothing was built');
    },
  };
}

/** Starts the shared parts. `ends` ends all that is started here or on the stage later. */
export async function setStage(ends: AsyncDisposableStack, options: StageOptions): Promise<Stage> {
  const { signal } = options;
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  ends.defer(() => rm(folder, { recursive: true, force: true }));
  const backendUrl = await startShared('backend.ts', ends, options);
  const facilitatorUrl = await startShared('facilitator-main.ts', ends, options);
  const processes = new Map<string, Process>();
  return {
    backendUrl,
    facilitatorUrl,
    async start(contestant) {
      const name = contestant.process ?? contestant.id;
      const running = processes.get(name);
      if (running !== undefined) return { contestant, ...running };
      const own = join(folder, name);
      await mkdir(own);
      const started = await startProcess(contestant, { backendUrl, facilitatorUrl, folder: own }, ends, options);
      processes.set(name, started);
      return { contestant, ...started };
    },
    async facilitatorCounts() {
      const answer = await fetch(`${facilitatorUrl}/counts`, { signal });
      return (await answer.json()) as FacilitatorCounts;
    },
  };
}

/** Starts a program that serves all contestants. Resolves to its URL. */
async function startShared(file: string, ends: AsyncDisposableStack, { cores, signal }: StageOptions): Promise<string> {
  const [port = 0] = await freePorts(1);
  const program = { args: [join(import.meta.dirname, file)], env: { PORT: String(port) } };
  const running = startProgram(cores.others, program);
  ends.defer(() => running.stop());
  const url = `http://127.0.0.1:${port}`;
  await running.ready(url, signal);
  return url;
}

async function startProcess(
  contestant: Contestant,
  shared: Pick<Surroundings, 'backendUrl' | 'facilitatorUrl' | 'folder'>,
  ends: AsyncDisposableStack,
  { cores, signal, entries }: StageOptions,
): Promise<Process> {
  const [port = 0, sparePort = 0] = await freePorts(2);
  const program = await contestant.program({
    ...shared,
    port,
    sparePort,
    gatewayEntry: () => entries.gateway(),
    noopEntry: () => entries.noop(),
    async redisUrl() {
      const redis = await startRedis();
      ends.defer(() => redis.stop());
      pin(cores.others, redis.pid);
      return redis.url;
    },
  });
  const running = startProgram(cores.contestant, program);
  ends.defer(() => running.stop());
  const origin = `http://127.0.0.1:${port}`;
  await running.ready(`${origin}${contestant.readyPath}`, signal);
  return { origin, program: running };
}

/** What a suite gets. */
export interface MeasuringParts {
  readonly entries: Entries;
  readonly signal: AbortSignal;
  /** Turns of each side, where the suite has no number of its own. */
  readonly rounds: number;
  tell(line: string): void;
}

/** The values of rows by their ids. */
export type Measured = ReadonlyMap<string, Measurement>;

/** A stage with its load generator. */
export interface Ground {
  readonly stage: Stage;
  readonly load: Load;
}

/** Sets a stage and starts the load. */
export async function groundFor(
  ends: AsyncDisposableStack,
  { entries, signal }: Pick<MeasuringParts, 'entries' | 'signal'>,
): Promise<Ground> {
  const cores = chooseCores();
  const stage = await setStage(ends, { cores, signal, entries });
  const load = startLoad(cores.others);
  ends.defer(() => load.stop());
  return { stage, load };
}
