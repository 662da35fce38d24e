/**
 * `make bench`: CPU a request of the gateway beside its peers, as ratios of one interleaved run a
 * suite (see `--help`).
 */
import { runBench } from './bench.ts';
import { type Contestant, SUITES, type Suite } from './contestant.ts';
import { chosen } from './contestants.ts';
import { CannotMeasure } from './meter.ts';
import { type BenchOptions, readOptions, USAGE } from './options.ts';
import { historyLine, type Standing, standings, table } from './report.ts';
import { measureStarts, STARTED, startHistory, startTable } from './start.ts';

/**
 * Below this share of a core other processes ran, or the generator was slower: ranges are wide
 * then.
 */
const FAIR_SHARE = 0.7;
/** The time limit: this many times the sum of all turns, plus a minute for starting. */
const PATIENCE = 4;
const START_ALLOWANCE_MS = 60_000;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  const onlyStarts = options.starts && options.suites?.length === 0;
  const contestants = onlyStarts ? [] : chosen(options);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort());
  const longest = AbortSignal.timeout(patienceMs(options, contestants.length));
  try {
    const signal = AbortSignal.any([stopped.signal, longest]);
    const all: Standing[] = [];
    for (const suite of SUITES) all.push(...(await runSuite(contestants, suite, options, signal)));
    if (options.starts) {
      const starts = await measureStarts(options, signal, (line) => process.stderr.write(`start: ${line}\n`));
      process.stdout.write(`${startTable(starts)}\n\n${startHistory(starts)}\n`);
      if (onlyStarts) return 0;
    }
    process.stdout.write(`${historyLine(all, { seconds: options.seconds, rounds: options.rounds })}\n`);
    const starved = all.filter(({ busy }) => busy < FAIR_SHARE).map(({ id }) => id);
    if (starved.length > 0) process.stderr.write(`Not a quiet machine: ${starved.join(', ')} often had to wait.\n`);
    return 0;
  } catch (error) {
    if (stopped.signal.aborted) return 130;
    if (error instanceof CannotMeasure) process.stderr.write(`Nothing was measured: ${error.message}.\n`);
    else process.stderr.write(`The benchmark failed: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

/** Only the contestants of one suite run together: fewer programs share memory and caches. */
async function runSuite(
  contestants: readonly Contestant[],
  suite: Suite,
  options: BenchOptions,
  signal: AbortSignal,
): Promise<readonly Standing[]> {
  const own = contestants.filter((one) => one.suite === suite);
  if (own.length === 0) return [];
  const rounds = await runBench(own, options, signal, (line) => process.stderr.write(`${suite}: ${line}\n`));
  const all = standings(own, rounds);
  process.stdout.write(`${table(all)}\n\n`);
  return all;
}

function patienceMs({ seconds, rounds, starts }: BenchOptions, contestants: number): number {
  const turns = contestants + (starts ? STARTED : 0);
  return START_ALLOWANCE_MS + PATIENCE * turns * (rounds + 2) * (seconds + 2) * 1_000;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exitCode = 64;
}
