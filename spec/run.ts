import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

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

/** A file that hangs must not hang the run; on two busy cores the longest takes a third of this. */
const FILE_TIMEOUT_MS = 300_000;

// Three hundred processes read much the same sources: what one has compiled the next one need not.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../node_modules/.cache/compiled');

const tally = { passed: 0, failed: 0, skipped: [] as string[] };
const events = run({ files, concurrency: Math.max(2, availableParallelism()), timeout: FILE_TIMEOUT_MS });
events.on('test:pass', ({ name, details, skip, todo }) => {
  if (details.type === 'suite') return;
  if (skip !== undefined || todo !== undefined) tally.skipped.push(`${name}: ${skip ?? todo}`);
  else tally.passed += 1;
});
events.on('test:fail', ({ details }) => {
  if (details.type !== 'suite') tally.failed += 1;
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
