/**
 * Runs the specs and ends with one line `N passed, N failed`. Arguments name files or folders; none
 * means all specs, with one short run of each kind that touches money; `--verification` means what
 * proves the system at length, as short as it goes. A file that failed in such a run runs once
 * more, alone, and its second result counts; both are printed. The end lists skipped tests: nothing
 * is left out silently. `SPECS_AGAIN=1` gives a run of a part its second try too. `--unit` runs
 * what needs no program and no process beside it, and fetches nothing; any other run first fetches
 * what its specs need.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { run } from 'node:test';
import { spec as specReporter } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { endHanging } from './hanging.ts';
import { type Need, needsOf } from './needs.ts';
import { processesOf, type SpecProcess } from './processes.ts';
import { bundledGateway, bundledPrograms } from './support/bundle.ts';
import { COMPILE_CACHE, compileSources } from './support/compile-cache.ts';
import { type Result, Tally } from './tally.ts';

/** One short run of each kind of `verification` that touches money. */
const SHORT_RUNS: ReadonlySet<string> = new Set(
  ['chaos/chaos', 'chaos/sim/seeds', 'refunds/refunds', 'signed/signed'].map((name) => `verification/${name}.spec.ts`),
);
const { values, positionals: wanted } = parseArgs({
  options: { unit: { type: 'boolean' }, verification: { type: 'boolean' } },
  allowPositionals: true,
});
const isUnit = values.unit === true;
const whole = wanted.length === 0 && !isUnit;
const patterns = wanted.length === 0 ? ['{spec,verification}/**/*.spec.ts'] : wanted.map(pattern);
const found = globSync(patterns)
  .filter((file) => wanted.length > 0 || isLong(file) === (values.verification === true))
  .sort();
const needs = needsOf(found);
const files = isUnit ? found.filter((file) => needs.get(file)?.size === 0) : found;
if (files.length === 0) {
  process.stderr.write('no spec matches\n');
  process.exit(1);
}

/** What brings a program. */
const PROGRAMS: Readonly<Partial<Record<Need, string>>> = {
  redis: 'spec/support/install-redis.ts',
  browser: 'spec/support/install-chromium.ts',
  kubectl: 'spec/deploy/kubectl.ts',
};
/** What a few specs read, and is large: it comes while the others run. */
const DOCUMENTS = 'verification/import/documents.ts';
/** A test that hangs must not hang the run. */
const TEST_TIMEOUT_MS = 300_000;
/** Nor a process; on two busy cores the longest takes a third of this. */
const PROCESS_TIMEOUT_MS = 600_000;
/**
 * With more failed files something is broken, not unsteady: to run them again would only hide the
 * news for minutes.
 */
const MOST_AGAIN = 20;

const needed = new Set(files.flatMap((file) => [...(needs.get(file) ?? [])]));
const fetching = [...needed].map(fetchProgram);
Object.assign(process.env, COMPILE_CACHE);
// A run of everything starts hundreds of gateways; a run of a part shall not wait for a build.
if (whole) {
  if (values.verification === true) script(DOCUMENTS).unref();
  const [entry, programs] = await Promise.all([bundledGateway(), bundledPrograms(), compileSources()]);
  process.env['GATEWAY_ENTRY'] ??= entry;
  process.env['PROGRAMS'] ??= programs;
}
await Promise.all(fetching);

const results = new Map(await tested(processesOf(files)));
const failures = [...results].filter(([, { failed }]) => failed > 0).map(([file]) => file);
const told: string[] = [];
if (failures.length > MOST_AGAIN) told.push(`${failures.length} files failed: too many to run them once more`);
else if (whole || process.env['SPECS_AGAIN'] === '1') for (const file of failures) await onceMore(file);
for (const line of told) process.stdout.write(`${line}\n`);
const all = [...results.values()];
for (const skipped of all.flatMap((result) => result.skipped)) process.stdout.write(`SKIPPED ${skipped}\n`);
const passed = sum(all, 'passed');
const failed = sum(all, 'failed');
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

/** Fetches what a spec starts; prints nothing where it is there. */
async function fetchProgram(need: Need): Promise<void> {
  const program = PROGRAMS[need];
  if (program === undefined) return;
  const [code] = await once(script(program), 'exit');
  if (code === 0) return;
  process.stderr.write(`${program} failed\n`);
  process.exit(1);
}

function script(file: string): ChildProcess {
  return spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/**
 * Runs a file without any other beside it; what it comes to now replaces what it came to before.
 */
async function onceMore(file: string): Promise<void> {
  process.stdout.write(`\n${file} failed in the whole run; once more, alone:\n`);
  const before = results.get(file);
  const again = (await tested(processesOf([file]))).get(file);
  if (before === undefined || again === undefined) throw new Error(`${file} has no result`);
  results.set(file, again);
  const verdict = again.failed === 0 ? 'UNSTEADY' : 'FAILED TWICE';
  told.push(`${verdict} ${file}: first ${words(before)}, then alone ${words(again)}`);
}

function words(result: Result): string {
  return `${result.passed} passed and ${result.failed} failed`;
}

/** Runs processes side by side and prints their results. */
async function tested(processes: readonly SpecProcess[]): Promise<ReadonlyMap<string, Result>> {
  const tally = new Tally(processes);
  const events = run({
    files: processes.map(({ file }) => file),
    // Two more than there are cores: many specs wait for deadlines and restarts half of their time.
    concurrency: availableParallelism() + 2,
    timeout: TEST_TIMEOUT_MS,
  });
  const stopLooking = endHanging(PROCESS_TIMEOUT_MS, (pid) => {
    process.stderr.write(`a spec process (${pid}) has run for ${PROCESS_TIMEOUT_MS / 1_000} s: it is ended\n`);
  });
  events.on('test:pass', (event) => tally.passed(event));
  events.on('test:fail', (event) => tally.failed(event));
  events.on('test:summary', ({ file }) => tally.endOfProcess(file));
  const report = events.compose(new specReporter());
  report.pipe(process.stdout, { end: false });
  await new Promise((resolve, reject) => report.once('end', resolve).once('error', reject));
  stopLooking();
  return tally.results();
}

function sum(some: readonly Result[], what: 'passed' | 'failed'): number {
  return some.reduce((total, result) => total + result[what], 0);
}

/** Whether a spec is one of those that prove the system at length. */
function isLong(file: string): boolean {
  return file.startsWith('verification/') && !SHORT_RUNS.has(file);
}

function pattern(name: string): string {
  return name.endsWith('.ts') ? name : `${name.replace(/\/$/, '')}/**/*.spec.ts`;
}
