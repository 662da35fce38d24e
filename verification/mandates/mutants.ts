/**
 * Removes one check at a time from the verifier of mandates and runs its specs: `make mutants
 * ARGS="[--checks] [--minutes N] [--sample N] [file ...]"`. `--checks`: whole checks and calls
 * only, no sides of a condition and no comparisons. Mutants that no test detects are printed; exit
 * 1 when one of them is not in `mutants/harmless.ts`.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { HARMLESS } from './mutants/harmless.ts';
import { type Mutant, mutantsOf } from './mutants/sites.ts';
import { type Fate, tried } from './mutants/trial.ts';

/** At most the cores of a small machine: a trial without CPU looks like one that hangs. */
const TRIALS_AT_ONCE = 2;
const DEFAULT_MINUTES = 45;
/** Tried last: specs with many random cases, files or sockets. */
const SLOW = /config\/|key-fetch|malformed|mutations|remote/;
const BASELINE_MS = 300_000;
const LEAST_TIMEOUT_MS = 30_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { checks: { type: 'boolean' }, minutes: { type: 'string' }, sample: { type: 'string' } },
});
const files = positionals.length > 0 ? positionals : globSync('src/mandates/**/*.ts').sort();
const specs = [
  ...globSync(['spec/mandates/**/*.spec.ts', 'spec/config/sections/ap2*.spec.ts']),
  'verification/mandates/oracle.spec.ts',
].sort();
const quick = specs.filter((spec) => !SLOW.test(spec));
const slow = specs.filter((spec) => SLOW.test(spec));
const everything = files
  .flatMap((file) => mutantsOf(file, readFileSync(file, 'utf8')))
  .filter(({ whole }) => whole || values.checks !== true);
const mutants = sampled(everything, Number(values.sample ?? everything.length));

const began = performance.now();
const fate = await tried(undefined, specs, BASELINE_MS);
if (fate !== 'survived') {
  console.error(`the specs on the code as it is: ${fate === 'timeout' ? 'no end' : 'one of them fails'}`);
  process.exit(1);
}
const started = performance.now();
/** Ten times the duration of all specs: a trial that runs longer loops. */
const timeoutMs = Math.max(10 * (started - began), LEAST_TIMEOUT_MS);
const deadline = started + Number(values.minutes ?? DEFAULT_MINUTES) * 60_000;
const fates = new Map<Mutant, Fate>();
const queue = [...mutants];
await Promise.all(Array.from({ length: TRIALS_AT_ONCE }, work));

const survivors = mutants.filter((one) => fates.get(one) === 'survived');
const unexplained = survivors.filter((one) => !explained(one));
const stale = Object.keys(HARMLESS).filter((name) => isStale(name));
for (const name of stale) console.log(`STALE    ${name}: killed, or not there any more`);
const untried = mutants.length - fates.size;
const killed = fates.size - survivors.length;
const hung = [...fates.values()].filter((fate) => fate === 'timeout').length;
const minutes = ((performance.now() - started) / 60_000).toFixed(1);
console.log(
  `${mutants.length} mutants, ${killed} killed (${hung} of them by time), ${survivors.length - unexplained.length} harmless, ${unexplained.length} survived, ${untried} not tried, ${minutes} min`,
);
process.exitCode = unexplained.length + stale.length + untried === 0 ? 0 : 1;

async function work(): Promise<void> {
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    if (performance.now() > deadline) return;
    const fate = await nearestFirst(mutant);
    fates.set(mutant, fate);
    if (fate === 'survived')
      console.log(`${explained(mutant) ? 'harmless' : 'SURVIVED'} line ${mutant.line} of ${mutant.name}`);
    if (process.stderr.isTTY) process.stderr.write(`\r${fates.size} of ${mutants.length} `);
  }
}

function explained({ name }: Mutant): boolean {
  return HARMLESS[name] !== undefined;
}

/** First the specs that import the file, then the quick ones, then all others. */
async function nearestFirst(mutant: Mutant): Promise<Fate> {
  const name = `/${path.basename(mutant.file)}'`;
  const near = quick.filter((spec) => readFileSync(spec, 'utf8').includes(name));
  for (const group of [near, quick.filter((spec) => !near.includes(spec)), slow]) {
    const fate = group.length === 0 ? 'survived' : await tried(mutant, group, timeoutMs);
    if (fate !== 'survived') return fate;
  }
  return 'survived';
}

/** Only for files whose mutants were all tried. */
function isStale(name: string): boolean {
  const known = everything.find((one) => one.name === name);
  if (known === undefined) return positionals.length === 0 && values.checks !== true;
  const fate = fates.get(known);
  return fate !== undefined && fate !== 'survived';
}

/** Every n-th, so that each file has its share. */
function sampled(all: readonly Mutant[], count: number): readonly Mutant[] {
  const step = Math.max(1, all.length / Math.max(1, count));
  return all.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}
