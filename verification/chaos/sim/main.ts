/**
 * The simulator on the command line. `--seed N [--without 1,2] [--mutant name]` runs one seed and
 * prints every step; `--from N --runs M` runs many and shrinks the first that breaks a law;
 * `--deep` ends one call at every pair of points, in every variant.
 */

import { parseArgs } from 'node:util';
import { CRASH, casesOf, failureReport, LONG_PAUSE, sweep } from './crashes.ts';
import { ALL_MUTANTS } from './mutants.ts';
import { NO_MUTANT, report, runSeed, shrink } from './seeds.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    without: { type: 'string', default: '' },
    mutant: { type: 'string' },
    from: { type: 'string', default: '1' },
    runs: { type: 'string', default: '10000' },
    deep: { type: 'boolean', default: false },
  },
});
const mutant = ALL_MUTANTS.find(({ name }) => name === values.mutant) ?? NO_MUTANT;
const began = performance.now();

function print(line: object): void {
  process.stdout.write(`${JSON.stringify({ ...line, seconds: Math.round((performance.now() - began) / 100) / 10 })}\n`);
}

async function oneSeed(seed: number): Promise<boolean> {
  const spared = values.without.split(',').filter(Boolean).map(Number);
  const run = await runSeed(seed, mutant, spared, true);
  process.stdout.write(`${report(run)}\n`);
  print({ seed, violations: run.violations, endings: run.endings, steps: run.steps });
  return run.violations.length === 0;
}

async function manySeeds(from: number, runs: number): Promise<boolean> {
  let steps = 0;
  for (let seed = from; seed < from + runs; seed += 1) {
    const run = await runSeed(seed, mutant);
    steps += run.steps;
    if (run.violations.length === 0) continue;
    process.stdout.write(`${report(await shrink(run, mutant))}\n`);
    print({ seed, violations: run.violations, runs: seed - from + 1, steps });
    return false;
  }
  print({ violations: [], runs, steps });
  return true;
}

async function everyPair(): Promise<boolean> {
  let runs = 0;
  for (const rail of ['remote', 'local', 'blind'] as const)
    for (const method of ['GET', 'POST'] as const)
      for (const key of [undefined, 'key-of-the-buyer'])
        for (const one of casesOf(rail, method, key)) {
          const swept = await sweep([one], [CRASH, LONG_PAUSE], CRASH, mutant);
          runs += swept.runs;
          const [failure] = swept.failures;
          if (failure !== undefined) process.stdout.write(`${await failureReport(failure, mutant)}\n`);
          print({ case: one.name, runs: swept.runs, failures: swept.failures.length });
          if (failure !== undefined) return false;
        }
  print({ violations: [], runs });
  return true;
}

const held =
  values.seed !== undefined
    ? await oneSeed(Number(values.seed))
    : values.deep
      ? await everyPair()
      : await manySeeds(Number(values.from), Number(values.runs));
process.exitCode = held ? 0 : 1;
