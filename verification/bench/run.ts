/**
 * `make bench` and `make bench-quick`: what the gateway costs beside its peers, as ratios of
 * interleaved runs, beside the goals (see `--help`). Exit code 1 when a goal is missed.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Outcome, runBench } from './bench.ts';
import { START_SUITE, SUITES, type Suite } from './contestant.ts';
import { buildGateway, bundleOf } from './deployed.ts';
import { GOALS } from './goals.ts';
import type { Measured, MeasuringParts } from './ground.ts';
import { measureMemory } from './memory.ts';
import { CannotMeasure } from './meter.ts';
import { type BenchOptions, type MeasuredSuite, readOptions, USAGE } from './options.ts';
import { measureOverload } from './overload.ts';
import { contestantTable, goalTable, historyLine, type Standing, standings } from './report.ts';
import { measureResources } from './resources.ts';
import { type Plan, planOf, rowsOf, tooWide } from './rows.ts';
import { measureSettlement } from './settlement.ts';
import type { Entries } from './stage.ts';
import { measureStarts } from './start.ts';
import { judge, missed, type Row } from './verdict.ts';

/**
 * Below this share of a core other processes ran, or the generator was slower: ranges are wide
 * then.
 */
const FAIR_SHARE = 0.7;
/** The time limit: this many times the expected length. */
const PATIENCE = 5;
/** Expected length of starting and ending one contestant. */
const START_SECONDS = 1;
/** What a turn takes beside its time. */
const AROUND_TURN_SECONDS = 0.5;

/** A suite that takes no turns: gives the values of its rows by their ids. */
interface Measuring {
  /** Expected length. */
  readonly seconds: number;
  run(parts: MeasuringParts): Promise<Measured>;
}

const MEASURING: Readonly<Record<MeasuredSuite, Measuring>> = {
  settlement: { seconds: 150, run: measureSettlement },
  overload: { seconds: 130, run: measureOverload },
  resources: { seconds: 80, run: measureResources },
  memory: { seconds: 140, run: measureMemory },
  [START_SUITE]: { seconds: 100, run: measureStarts },
};

interface RunParts {
  readonly options: BenchOptions;
  readonly entries: Entries;
  readonly signal: AbortSignal;
  tell(line: string): void;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  const plan = planOf(options);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort());
  const seconds = expectedSeconds(options, plan);
  const longest = AbortSignal.timeout(PATIENCE * seconds * 1_000);
  process.stderr.write(`About ${Math.ceil(seconds / 60)} min; rows that are too wide take more.\n`);
  const folder = await mkdtemp(join(tmpdir(), 'bench-gateways-'));
  try {
    return await measured(options, plan, entriesIn(folder), AbortSignal.any([stopped.signal, longest]));
  } catch (error) {
    if (stopped.signal.aborted) return 130;
    if (error instanceof CannotMeasure) process.stderr.write(`Nothing was measured: ${error.message}.\n`);
    else process.stderr.write(`The benchmark failed: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measured(options: BenchOptions, plan: Plan, entries: Entries, signal: AbortSignal): Promise<number> {
  const rows: Row[] = [];
  const all: Standing[] = [];
  for (const suite of SUITES) {
    const parts = { options, entries, signal, tell: teller(suite) };
    const goals = plan.goals.filter((goal) => goal.suite === suite);
    const done = await unlessItFails(runSuite(suite, plan, parts), parts);
    if ('missing' in done) rows.push(...goals.map((goal) => judge(goal, done)));
    else {
      rows.push(...done.rows);
      all.push(...done.standings);
    }
  }
  for (const suite of options.measured) {
    const parts = { ...options, entries, signal, tell: teller(suite) };
    const values = await unlessItFails(MEASURING[suite].run(parts), parts);
    const goals = GOALS.filter((goal) => goal.suite === suite);
    rows.push(
      ...goals.map((goal) =>
        judge(goal, 'missing' in values ? values : (values.get(goal.of) ?? { missing: 'not measured' })),
      ),
    );
  }
  process.stdout.write(`${goalTable(rows, plan.contestants)}\n\n`);
  process.stdout.write(`${historyLine(rows, all, options)}\n`);
  const starved = all.filter(({ busy, id }) => busy < FAIR_SHARE && !id.includes('alone')).map(({ id }) => id);
  if (starved.length > 0) process.stderr.write(`Not a full core: ${starved.join(', ')} often had to wait.\n`);
  const lost = missed(rows);
  if (lost.length > 0) process.stdout.write(`Goals not met: ${lost.map(({ goal }) => goal.id).join(', ')}\n`);
  return lost.length === 0 ? 0 : 1;
}

/**
 * A suite that fails has no rows, and does not take those of the others with it: a run is most of
 * an hour. @throws when the run was ended, CannotMeasure
 */
async function unlessItFails<T extends object>(
  suite: Promise<T>,
  { signal, tell }: Pick<RunParts, 'signal' | 'tell'>,
): Promise<T | { readonly missing: string }> {
  try {
    return await suite;
  } catch (error) {
    if (signal.aborted || error instanceof CannotMeasure) throw error;
    const [missing = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    tell(`failed: ${missing}`);
    return { missing };
  }
}

/** Only the contestants of one suite run together: fewer programs share memory and caches. */
async function runSuite(
  suite: Suite,
  plan: Plan,
  { options, entries, signal, tell }: RunParts,
): Promise<{ readonly rows: readonly Row[]; readonly standings: readonly Standing[] }> {
  const contestants = plan.contestants.filter((one) => one.suite === suite);
  const goals = plan.goals.filter((goal) => goal.suite === suite);
  if (contestants.length === 0) return { rows: [], standings: [] };
  const outcomes: Outcome[] = [];
  for (let start = 0; start < options.starts; start += 1)
    outcomes.push(
      await runBench(contestants, { ...options, entries, again: (rounds) => tooWide(goals, rounds) }, signal, tell),
    );
  const all = standings(
    contestants,
    outcomes.flatMap(({ rounds }) => rounds),
  );
  process.stdout.write(`${contestantTable(all)}\n\n`);
  return { rows: rowsOf(goals, outcomes), standings: all };
}

function teller(suite: string): (line: string) => void {
  return (line) => process.stderr.write(`${suite}: ${line}\n`);
}

/** Built when they are first asked for. */
function entriesIn(folder: string): Entries {
  let gateway: Promise<string> | undefined;
  let noop: Promise<string> | undefined;
  const named = process.env['GATEWAY_ENTRY'];
  return {
    gateway() {
      gateway ??= named === undefined ? buildGateway(join(folder, 'gateway')) : Promise.resolve(named);
      return gateway;
    },
    noop() {
      noop ??= bundleOf('verification/bench/noop-main.ts', join(folder, 'noop'));
      return noop;
    },
  };
}

function expectedSeconds(
  { seconds, rounds, starts, warmUpSeconds, measured: suites }: BenchOptions,
  plan: Plan,
): number {
  const processes = new Set(plan.contestants.map(({ id, process: name = id }) => name)).size;
  const turns = plan.contestants.length * rounds * (seconds + AROUND_TURN_SECONDS);
  const others = suites.reduce((sum, suite) => sum + MEASURING[suite].seconds, 0);
  return starts * (processes * (START_SECONDS + warmUpSeconds) + turns) + others;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exitCode = 64;
}
