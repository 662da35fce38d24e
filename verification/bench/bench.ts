/** Runs the benchmark: all contestants of a suite in turns, round by round. */

import { setTimeout as delay } from 'node:timers/promises';
import { type Contestant, NotAvailable } from './contestant.ts';
import type { LoadReport } from './load.ts';
import { median, requireMeter, treeCpuNs } from './meter.ts';
import { type Entries, type Ground, groundFor, type Started } from './stage.ts';

/** One contestant's figures of one round. */
export interface RoundFigures {
  readonly id: string;
  /** Turns that the figures sum up: twice as many with each repetition of its row. */
  readonly turns: number;
  /** CPU of the contestant for one request, user and system, nanoseconds. */
  readonly cpuNs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /**
   * Share of the time that the contestant was on a core; well below 1, the generator was slower.
   */
  readonly busy: number;
}

/** How turns are taken. */
export interface TurnOptions {
  /** Length of one turn. */
  readonly seconds: number;
  /** Rounds; in each, every contestant has one turn, or more where the rounds are repeated. */
  readonly rounds: number;
  /** How long each process works before its first round, in interleaved turns. */
  readonly warmUpSeconds: number;
  readonly entries: Entries;
  /**
   * The contestants that take their rounds again, with twice as many turns in each, because a row
   * of theirs is too wide. None: the run ends.
   */
  readonly again?: (rounds: readonly (readonly RoundFigures[])[]) => ReadonlySet<string>;
  /** How often rounds are repeated at most. */
  readonly repeats?: number;
}

/** What a suite of turns gave. */
export interface Outcome {
  /** All rounds in their order: those of the first take, then those that were repeated. */
  readonly rounds: readonly (readonly RoundFigures[])[];
  /** Contestants that this machine cannot run, and why. */
  readonly missing: ReadonlyMap<string, string>;
}

/** A turn of the warm-up, seconds. */
const WARM_UP_TURN_SECONDS = 2;
/** The share of its time that a warm contestant is on its core, when nothing is slower. */
const WARM = 0.8;
/** On a busy machine the warm-up is at most this many times as long. */
const MOST_WARM_UP = 3;
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
  options: TurnOptions,
  signal: AbortSignal,
  log: (line: string) => void = () => {},
): Promise<Outcome> {
  requireMeter();
  await using ends = new AsyncDisposableStack();
  const { stage, load } = await groundFor(ends, { entries: options.entries, signal });

  const missing = new Map<string, string>();
  const started: Started[] = [];
  for (const contestant of contestants) {
    log(`starting ${contestant.id}`);
    try {
      started.push(await named(contestant, stage.start(contestant)));
    } catch (error) {
      if (!(error instanceof NotAvailable)) throw error;
      missing.set(contestant.id, error.message);
      log(`${contestant.id} is not available: ${error.message}`);
    }
  }
  const running = { stage, load, signal };
  log('warming up');
  await warmUp(started, options.warmUpSeconds, running);
  const rounds = [...(await takeRounds(started, { ...options, turns: 1 }, running, log))];
  for (let repeat = 1; repeat <= (options.repeats ?? 0); repeat += 1) {
    const again = options.again?.(rounds) ?? new Set();
    if (again.size === 0) break;
    const turns = 2 ** repeat;
    log(`too wide, again with ${turns} turns a round: ${[...again].join(', ')}`);
    const wide = started.filter(({ contestant }) => again.has(contestant.id));
    rounds.push(...(await takeRounds(wide, { ...options, turns }, running, log)));
  }
  return { rounds, missing };
}

/** A B C, C B A, A B C, ... */
export function orderOfRound<T>(all: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? all : all.toReversed();
}

interface Machinery extends Ground {
  readonly signal: AbortSignal;
}

/**
 * Interleaved turns, until each process has been on a core for `seconds`: on a busy machine that
 * takes longer, but not more than three times as long. Contestants of one process share its time.
 */
async function warmUp(all: readonly Started[], seconds: number, { load, signal }: Machinery): Promise<void> {
  const length = Math.min(WARM_UP_TURN_SECONDS, seconds);
  const turns = MOST_WARM_UP * Math.ceil(seconds / length);
  const began = new Map(all.map(({ program }) => [program.pid, treeCpuNs(program.pid)]));
  for (let turn = 0; turn < turns; turn += 1)
    for (const { contestant, origin, program } of orderOfRound(all, turn)) {
      const used = (treeCpuNs(program.pid) - (began.get(program.pid) ?? 0)) / 1e9;
      // Each question is asked at least once, however many the process answers.
      if (turn > 0 && used >= seconds * WARM) continue;
      const { question, connections } = contestant;
      // A process that is not compiled yet may be busy for longer than it lets calls wait.
      const task = { origin, question, seconds: length, retries: true, ...(connections && { connections }) };
      await named(contestant, load.fire(task, signal));
    }
}

/** How a round is made. */
interface RoundOptions extends Pick<TurnOptions, 'seconds'> {
  /**
   * Turns of each contestant in it, interleaved: what disturbs the machine for seconds then meets
   * all alike.
   */
  readonly turns: number;
}

async function takeRounds(
  all: readonly Started[],
  { rounds, ...how }: Pick<TurnOptions, 'rounds'> & RoundOptions,
  machinery: Machinery,
  log: (line: string) => void,
): Promise<readonly (readonly RoundFigures[])[]> {
  const taken: (readonly RoundFigures[])[] = [];
  for (let round = 0; round < rounds; round += 1) {
    log(`round ${round + 1} of ${rounds}`);
    const turns = new Map<Started, Turn[]>(all.map((one) => [one, []]));
    for (let turn = 0; turn < how.turns; turn += 1)
      for (const one of orderOfRound(all, round * how.turns + turn))
        turns.get(one)?.push(await named(one.contestant, turnOf(one, how, machinery)));
    taken.push([...turns].map(([{ contestant }, own]) => figuresOf(contestant.id, own)));
  }
  return taken;
}

/** What one turn gave. */
interface Turn extends Pick<LoadReport, 'requests' | 'elapsedMs' | 'p50Ms' | 'p99Ms'> {
  /** CPU of the contestant, user and system, nanoseconds. */
  readonly usedNs: number;
}

function figuresOf(id: string, turns: readonly Turn[]): RoundFigures {
  const sum = (of: (turn: Turn) => number): number => turns.reduce((total, turn) => total + of(turn), 0);
  const middle = (of: (turn: Turn) => number): number => median(turns.map(of));
  const [requests, elapsedMs, usedNs] = [
    sum((turn) => turn.requests),
    sum((turn) => turn.elapsedMs),
    sum((turn) => turn.usedNs),
  ];
  return {
    id,
    turns: turns.length,
    cpuNs: usedNs / requests,
    p50Ms: middle((turn) => turn.p50Ms),
    p99Ms: middle((turn) => turn.p99Ms),
    busy: usedNs / 1e6 / elapsedMs,
  };
}

async function turnOf(
  { contestant, origin, program }: Started,
  { seconds }: Pick<TurnOptions, 'seconds'>,
  { stage, load, signal }: Machinery,
): Promise<Turn> {
  const { question, connections, facilitatorCalls } = contestant;
  const task = { origin, question, ...(connections && { connections }) };
  await load.fire({ ...task, seconds: RUN_IN_SECONDS }, signal);
  await delay(TAIL_MS, undefined, { signal });
  const asked = facilitatorCalls === undefined ? undefined : await stage.facilitatorCounts();
  let before = 0;
  // Challenges that are asked for ahead are no part of the turn.
  const { requests, elapsedMs, p50Ms, p99Ms } = await load.fire({ ...task, seconds }, signal, () => {
    before = treeCpuNs(program.pid);
  });
  await delay(TAIL_MS, undefined, { signal });
  const usedNs = treeCpuNs(program.pid) - before;
  if (asked !== undefined && facilitatorCalls !== undefined) {
    const now = await stage.facilitatorCounts();
    for (const call of ['verify', 'settle'] as const) {
      const wanted = requests * facilitatorCalls[call];
      const made = now[call] - asked[call];
      if (made !== wanted) throw new Error(`${made} calls of /${call} for ${requests} answers, not ${wanted}`);
    }
  }
  return { requests, elapsedMs, p50Ms, p99Ms, usedNs };
}

/** Names the contestant that failed. */
async function named<T>(contestant: Contestant, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof NotAvailable) throw error;
    throw new Error(`${contestant.id}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
