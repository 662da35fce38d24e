/**
 * The simulation of keyed calls on the command line: `node verification/checkouts/main.ts --seed 7`
 * prints every step of one seed, `--runs 5000` runs that many seeds and prints those that break a
 * law.
 */
import { parseArgs } from 'node:util';
import { report, runSeed } from './run.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, runs: { type: 'string', default: '1000' } } });

if (values.seed === undefined) await many(Number(values.runs));
else process.stdout.write(`${report(await runSeed(Number(values.seed), { traced: true }))}\n`);

async function many(runs: number): Promise<void> {
  let broken = 0;
  for (let seed = 1; seed <= runs; seed += 1) {
    const { manner, violations } = await runSeed(seed);
    if (violations.length === 0) continue;
    broken += 1;
    process.stdout.write(`${seed} (the backend ${manner}): ${violations.join('; ')}\n`);
  }
  process.stdout.write(`${runs} seeds, ${broken} broke a law\n`);
  process.exitCode = broken === 0 ? 0 : 1;
}
