import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { processesOf } from './processes.ts';
import { bundledGateway } from './support/bundle.ts';
import { COMPILE_CACHE, compileSources } from './support/compile-cache.ts';

/**
 * Runs the specs and ends with one line `N passed, N failed`. Arguments name files or folders below spec/; none means everything.
 * A skipped test is told at the end: nothing is left out silently.
 */
const wanted = process.argv.slice(2);
const patterns = wanted.length === 0 ? ['spec/**/*.spec.ts'] : wanted.map(pattern);
const files = globSync(patterns).sort();
if (files.length === 0) {
  process.stderr.write('no spec matches\n');
  process.exit(1);
}

/** A process that hangs must not hang the run; on two busy cores the longest takes a third of this. */
const PROCESS_TIMEOUT_MS = 300_000;

Object.assign(process.env, COMPILE_CACHE);
// A run of everything starts hundreds of gateways; a run of a part shall not wait for a build.
if (wanted.length === 0) {
  const [entry] = await Promise.all([bundledGateway(), compileSources()]);
  process.env['GATEWAY_ENTRY'] ??= entry;
}

const tally = { passed: 0, failed: 0, skipped: [] as string[] };
const events = run({
  files: processesOf(files),
  concurrency: Math.max(2, availableParallelism()),
  timeout: PROCESS_TIMEOUT_MS,
});
events.on('test:pass', ({ name, details, skip, todo }) => {
  if (skip !== undefined || todo !== undefined) tally.skipped.push(`${name}: ${skip ?? todo}`);
  else if (details.type !== 'suite') tally.passed += 1;
});
events.on('test:fail', ({ details }) => {
  // A suite fails with its tests, and by itself when it cannot be loaded.
  if (details.type !== 'suite' || failureTypeOf(details.error) !== 'subtestsFailed') tally.failed += 1;
});
const report = events.compose(new spec());
report.pipe(process.stdout);
report.on('end', () => {
  for (const skipped of tally.skipped) process.stdout.write(`SKIPPED ${skipped}\n`);
  process.stdout.write(`${tally.passed} passed, ${tally.failed} failed\n`);
  process.exitCode = tally.failed === 0 && tally.passed > 0 ? 0 : 1;
});

function pattern(name: string): string {
  return name.endsWith('.ts') ? name : `${name.replace(/\/$/, '')}/**/*.spec.ts`;
}

function failureTypeOf(error: Error): unknown {
  return 'failureType' in error ? error.failureType : undefined;
}
