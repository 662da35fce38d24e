/** `make bench`: CPU a request of the gateway beside its peers, as ratios of one interleaved run (see `--help`). */
import { runBench } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { CannotMeasure } from './meter.ts';
import { type BenchOptions, readOptions, USAGE } from './options.ts';
import { expressJson } from './peers/express-json.ts';
import { gatewayChallenge } from './peers/gateway-challenge.ts';
import { gatewayFree } from './peers/gateway-free.ts';
import { hpmRecipe } from './peers/hpm-recipe.ts';
import { hpmStreamed } from './peers/hpm-streamed.ts';
import { historyLine, standings, table } from './report.ts';

const CONTESTANTS: readonly Contestant[] = [gatewayFree, hpmStreamed, hpmRecipe, gatewayChallenge, expressJson];

/** Below this share of a core somebody else worked here, or the generator was the slower one: ranges are wide then. */
const FAIR_SHARE = 0.7;
/** Nothing takes longer than this many times what the turns alone take, plus a minute for starting. */
const PATIENCE = 4;
const START_ALLOWANCE_MS = 60_000;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  const contestants = chosen(options.only);
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort());
  const longest = AbortSignal.timeout(patienceMs(options, contestants.length));
  try {
    const signal = AbortSignal.any([stopped.signal, longest]);
    const rounds = await runBench(contestants, options, signal, (line) => process.stderr.write(`${line}\n`));
    const all = standings(contestants, rounds);
    process.stdout.write(
      `${table(all)}\n\n${historyLine(all, { seconds: options.seconds, rounds: options.rounds })}\n`,
    );
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

function chosen(only: readonly string[] | undefined): readonly Contestant[] {
  if (only === undefined) return CONTESTANTS;
  const ids = CONTESTANTS.map(({ id }) => id);
  const unknown = only.find((id) => !ids.includes(id));
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is none of ${ids.join(', ')}`);
  return CONTESTANTS.filter(({ id }) => only.includes(id));
}

function patienceMs({ seconds, rounds }: BenchOptions, contestants: number): number {
  return START_ALLOWANCE_MS + PATIENCE * contestants * (rounds + 2) * (seconds + 1) * 1_000;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exitCode = 64;
}
