/**
 * `make bench` and `make bench-quick`: what the gateway costs beside its peers, as ratios of
 * interleaved runs, beside the goals (see `--help`). Exit code 1 when a goal is missed.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Outcome, runBench } from './bench.ts';
import { type Contestant, START_SUITE, SUITES, type Suite } from './contestant.ts';
import { buildGateway, bundleOf } from './deployed.ts';
import { GOALS, MEASURED_SUITES, type RowSuite } from './goals.ts';
import { CannotMeasure, median } from './meter.ts';
import { measureOverload } from './overload.ts';
import type { Entries, Measured, MeasuringParts } from './stage.ts';
import { measureStarts } from './start.ts';
import { judge, MAX_SPREAD, missed, type Plan, planOf, type Row, rowsOf, tooWide } from './verdict.ts';

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
  overload: { seconds: 130, run: measureOverload },
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
  const starved: string[] = [];
  for (const suite of SUITES) {
    const parts = { options, entries, signal, tell: teller(suite) };
    const goals = plan.goals.filter((goal) => goal.suite === suite);
    const done = await unlessItFails(runSuite(suite, plan, parts), parts);
    if (!('rounds' in done)) rows.push(...goals.map((goal) => judge(goal, done)));
    else {
      rows.push(...rowsOf(goals, done));
      starved.push(...starvedOf(plan.contestants, done));
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
async function runSuite(suite: Suite, plan: Plan, { options, entries, signal, tell }: RunParts): Promise<Outcome> {
  const contestants = plan.contestants.filter((one) => one.suite === suite);
  const goals = plan.goals.filter((goal) => goal.suite === suite);
  if (contestants.length === 0) return { rounds: [], missing: new Map() };
  return runBench(contestants, { ...options, entries, again: (rounds) => tooWide(goals, rounds) }, signal, tell);
}

/** Contestants that were not on their core most of the time, but for those of one connection. */
function starvedOf(contestants: readonly Contestant[], { rounds }: Outcome): readonly string[] {
  const busyOf = (id: string): readonly number[] =>
    rounds.flatMap((turns) => turns.filter((turn) => turn.id === id).map(({ busy }) => busy));
  return contestants
    .filter(({ id, connections }) => connections === undefined && median(busyOf(id)) < FAIR_SHARE)
    .map(({ id }) => id);
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

function expectedSeconds({ seconds, rounds, warmUpSeconds, measured: suites }: BenchOptions, plan: Plan): number {
  const processes = new Set(plan.contestants.map(({ id, process: name = id }) => name)).size;
  const turns = plan.contestants.length * rounds * (seconds + AROUND_TURN_SECONDS);
  const others = suites.reduce((sum, suite) => sum + MEASURING[suite].seconds, 0);
  return processes * (START_SECONDS + warmUpSeconds) + turns + others;
}

/** How a benchmark is run. */
export interface BenchOptions {
  /** Length of one turn of one contestant. */
  readonly seconds: number;
  /** Turns of each contestant; even, so that every one is as often early as late. */
  readonly rounds: number;
  /** How long each process is asked before its first round. */
  readonly warmUpSeconds: number;
  /** How often the rounds of rows that are too wide are taken again, with longer turns. */
  readonly repeats: number;
  /** Which suites of turns. */
  readonly suites: readonly Suite[];
  /** Which suites that measure in other ways. */
  readonly measured: readonly MeasuredSuite[];
  /** Only the rows that matter most. */
  readonly quick: boolean;
  /** Ids of the contestants; undefined: all. */
  readonly only: readonly string[] | undefined;
  /** Entry of an earlier gateway, src/main.ts or a bundle; undefined: the peers. */
  readonly before: string | undefined;
}

type MeasuredSuite = (typeof MEASURED_SUITES)[number];

const ALL: readonly RowSuite[] = [...SUITES, ...MEASURED_SUITES];

const USAGE = `node verification/bench/run.ts [options]

  --quick         the rows that matter most in a minute: shorter turns and warm-up, no repeats
  --suite A,B     some of ${ALL.join(', ')}
  --only A,B      these contestants only; a ratio needs its peer
  --before FILE   each gateway beside an earlier one (its src/main.ts or its bundle), no peers
  --seconds N     length of a turn (default 1, at most 30)
  --rounds N      turns of each contestant (default 6, at most 50)
  --warm-up N     seconds that each process is asked before its first round (default 10)

GATEWAY_ENTRY names another entry than the bundle that is built for the run.
`;

const DEFAULTS = { seconds: 1, rounds: 6, warmUpSeconds: 10, repeats: 2 };
const QUICK = { seconds: 0.5, rounds: 4, warmUpSeconds: 2, repeats: 0 };
const MAX_SECONDS = 30;
const MAX_ROUNDS = 50;

/** Reads the command line. @throws Error with the mistake */
function readOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      'warm-up': { type: 'string' },
      suite: { type: 'string' },
      only: { type: 'string' },
      before: { type: 'string' },
      quick: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return 'help';
  const quick = values.quick === true;
  const preset = quick ? QUICK : DEFAULTS;
  const seconds = Number(values.seconds ?? preset.seconds);
  const rounds = Number(values.rounds ?? preset.rounds);
  const warmUpSeconds = Number(values['warm-up'] ?? preset.warmUpSeconds);
  for (const [name, value] of [
    ['--seconds', seconds],
    ['--warm-up', warmUpSeconds],
  ] as const)
    if (!(value > 0 && value <= MAX_SECONDS)) throw new Error(`${name}: more than 0, at most ${MAX_SECONDS}`);
  if (!(Number.isInteger(rounds) && rounds > 0 && rounds <= MAX_ROUNDS))
    throw new Error(`--rounds: a whole number from 1 to ${MAX_ROUNDS}`);
  const { before } = values;
  const only = values.only?.split(',');
  const named = suitesOf(values.suite?.split(','));
  return {
    seconds,
    rounds,
    warmUpSeconds,
    repeats: preset.repeats,
    suites: SUITES.filter((suite) => named.includes(suite)),
    // Contestants, and an earlier gateway, are those of the suites of turns.
    measured:
      only === undefined && (values.suite !== undefined || (before === undefined && !quick))
        ? MEASURED_SUITES.filter((suite) => named.includes(suite))
        : [],
    quick,
    only,
    before,
  };
}

function suitesOf(names: readonly string[] | undefined): readonly RowSuite[] {
  if (names === undefined) return ALL;
  return names.map((name) => {
    const suite = ALL.find((known) => known === name);
    if (suite === undefined) throw new Error(`--suite: ${name} is none of ${ALL.join(', ')}`);
    return suite;
  });
}

const ROW_HEADINGS = ['row', 'peer', 'now', 'goal', 'stretch', 'spread', 'met'];

/** The rows, with the exact program of each peer. */
function goalTable(rows: readonly Row[], contestants: readonly Contestant[]): string {
  const titles = new Map(contestants.map(({ id, title }) => [id, title]));
  return aligned([
    ROW_HEADINGS,
    ...rows.map(({ goal, now, spread, met, missing }) => [
      `${goal.id}: ${goal.what}`,
      (goal.against === undefined ? goal.peer : titles.get(goal.against)) ?? '-',
      figure(now),
      limit(goal.goal, goal.atLeast),
      limit(goal.stretch, goal.atLeast),
      spread === undefined ? '-' : `${(spread * 100).toFixed(0)} %${spread > MAX_SPREAD ? '!' : ''}`,
      missing === undefined ? met : `${met}: ${missing}`,
    ]),
  ]);
}

/** Three digits tell enough of a ratio; counts are whole. */
function figure(value: number | undefined): string {
  if (value === undefined) return '-';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function limit(value: number | undefined, atLeast: true | undefined): string {
  return value === undefined ? '-' : `${atLeast === true ? '>=' : '<='} ${value}`;
}

/** Columns of words to the left, of numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): string {
  const [headings = []] = rows;
  const widths = headings.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const words = (column: number): boolean => column === 0 || ['peer', 'met'].includes(headings[column] ?? '');
  return rows
    .map((cells) =>
      cells
        .map((cell, at) => (words(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exitCode = 64;
}
