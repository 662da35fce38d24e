/** Runs the benchmark: all contestants in turns, round by round. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Contestant } from './contestant.ts';
import { chooseCores } from './cores.ts';
import { type Load, startLoad } from './load.ts';
import { cpuNs, requireMeter, residentBytes } from './meter.ts';
import type { BenchOptions } from './options.ts';
import { type Started, setStage } from './stage.ts';

/** One contestant's figures of one round. */
export interface Turn {
  readonly id: string;
  /** CPU of the contestant for one request, user and system, nanoseconds. */
  readonly cpuNs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentBytes: number;
  /**
   * Share of the time that the contestant was on a core; well below 1, the generator was slower.
   */
  readonly busy: number;
}

/**
 * Before the first round each contestant is asked for at least this long, so that its code is
 * compiled, seconds.
 */
const WARM_UP_SECONDS = 2;
/** Uncounted time before each turn, seconds: connections open, caches warm up. */
const RUN_IN_SECONDS = 0.2;
/**
 * Time after each turn, milliseconds: the contestant still writes its events and log lines, which
 * count.
 */
const TAIL_MS = 100;

/**
 * Starts every contestant once, then lets them take turns: in each round every one, and every
 * second round in reverse order, so that a drift of the machine affects all alike. All started
 * processes are ended in any case. @throws CannotMeasure; Error that names the contestant which did
 * not start or gave a wrong answer
 */
export async function runBench(
  contestants: readonly Contestant[],
  options: Pick<BenchOptions, 'seconds' | 'rounds' | 'profile'> & { readonly warmUpSeconds?: number },
  signal: AbortSignal,
  log: (line: string) => void = () => {},
): Promise<readonly (readonly Turn[])[]> {
  requireMeter();
  const cores = chooseCores();
  await using ends = new AsyncDisposableStack();
  const stage = await setStage(ends, { cores, signal, profile: options.profile });
  const load = startLoad(cores.others);
  ends.defer(() => load.stop());

  const started: Started[] = [];
  for (const contestant of contestants) {
    log(`starting ${contestant.id}`);
    started.push(await named(contestant, stage.start(contestant)));
  }
  const warmUpSeconds = options.warmUpSeconds ?? WARM_UP_SECONDS;
  for (const one of started) {
    log(`warming up ${one.contestant.id}`);
    const { contestant, origin } = one;
    await named(contestant, load.fire(origin, contestant.question, warmUpSeconds, signal));
  }
  const rounds: Turn[][] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    log(`round ${round + 1} of ${options.rounds}`);
    const turns: Turn[] = [];
    for (const one of orderOfRound(started, round))
      turns.push(await named(one.contestant, turnOf(one, load, options.seconds, signal)));
    rounds.push(turns);
  }
  return rounds;
}

/** A B C, C B A, A B C, ... */
export function orderOfRound<T>(all: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? all : all.toReversed();
}

async function turnOf({ contestant, origin, program }: Started, load: Load, seconds: number, signal: AbortSignal) {
  const { id, question } = contestant;
  await load.fire(origin, question, RUN_IN_SECONDS, signal);
  await delay(TAIL_MS, undefined, { signal });
  const before = cpuNs(program.pid);
  const { requests, elapsedMs, p50Ms, p99Ms } = await load.fire(origin, question, seconds, signal);
  await delay(TAIL_MS, undefined, { signal });
  const used = cpuNs(program.pid) - before;
  return {
    id,
    cpuNs: used / requests,
    perSecond: (requests * 1_000) / elapsedMs,
    p50Ms,
    p99Ms,
    residentBytes: residentBytes(program.pid),
    busy: used / 1e6 / elapsedMs,
  } satisfies Turn;
}

/** Names the contestant that failed. */
async function named<T>(contestant: Contestant, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new Error(`${contestant.id}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
