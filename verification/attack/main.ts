/**
 * The adversary: `node verification/attack/main.ts [--quick] [--requests 20000] [--seed 7]`. Runs
 * every attack of the catalogue, then the specs elsewhere that it names, and prints the result of
 * each row, published attack and goal. Exit code 1 unless all passed.
 */

import { randomInt } from 'node:crypto';
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { parseArgs } from 'node:util';
import { attackName, type Figure, readFigure } from './catalogue.ts';
import { ELSEWHERE } from './elsewhere.ts';
import { type Outcome, report } from './report.ts';

/** Longer than any file of the long run takes. */
const FILE_TIMEOUT_MS = 1_800_000;

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, requests: { type: 'string' }, seed: { type: 'string' } },
});
const quick = values.quick === true;
process.env['ATTACK_RUN'] = quick ? 'quick' : 'long';
process.env['ATTACK_SEED'] = values.seed ?? String(randomInt(2 ** 31));
if (values.requests !== undefined) process.env['ATTACK_REQUESTS'] = values.requests;
process.stderr.write(`seed ${process.env['ATTACK_SEED']}\n`);

const outcomes: Outcome[] = [];
const figures = new Map<Figure, number[]>();

/** Failures that are no attacks: a file that did not load, a rule of the catalogue itself. */
const broken: string[] = [];

await play(globSync('verification/attack/**/*.spec.ts'), (title, passed) => {
  const of = attackName(title);
  if (of !== undefined) outcomes.push({ ...of, passed });
  else if (!passed) broken.push(title);
});
const elsewhere: { readonly title: string; readonly passed: boolean }[] = [];
// Titles in a table of data are those of the spec beside it.
const specs = Object.keys(ELSEWHERE).map((file) => file.replace(/\.yaml$/, '.spec.ts'));
await play([...new Set(specs)], (title, passed) => elsewhere.push({ title, passed }));
for (const [rows, title] of Object.values(ELSEWHERE).flat()) {
  const spelled = spelledTitle(title);
  const ran = elsewhere.filter((test) => spelled.test(test.title));
  outcomes.push({ rows: rows.split(' '), name: title, passed: ran.length > 0 && ran.every(({ passed }) => passed) });
}

const { lines, met } = report({ outcomes, figures, quick });
for (const line of lines) process.stdout.write(`${line}\n`);
for (const title of broken) process.stdout.write(`FAILED beside the catalogue: ${title}\n`);
process.exitCode = met && broken.length === 0 ? 0 : 1;

/** Matches the test names that a title of the source, with its template values, can produce. */
function spelledTitle(title: string): RegExp {
  const parts = title.split(/\$\{[^}]*\}|<each>/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/**
 * Runs spec files one after the other, so that no file disturbs the measurements of another. A
 * skipped test has not passed.
 */
async function play(files: readonly string[], onEnd: (title: string, passed: boolean) => void): Promise<void> {
  const events = run({ files: [...files].sort(), concurrency: 1, timeout: FILE_TIMEOUT_MS });
  events.on('test:diagnostic', ({ message }) => {
    const reading = readFigure(message);
    if (reading !== undefined) figures.set(reading.figure, [...(figures.get(reading.figure) ?? []), reading.value]);
  });
  events.on('test:pass', ({ name, details, skip }) => {
    if (details.type === 'suite') return;
    if (skip !== undefined) process.stderr.write(`\nNOT DONE ${name}: ${skip}\n`);
    onEnd(name, skip === undefined);
  });
  events.on('test:fail', ({ name, details }) => {
    if (details.type === 'suite') return;
    process.stderr.write(`\nFAILED ${name}\n${details.error.message}\n`);
    onEnd(name, false);
  });
  events.resume();
  for await (const _ of events) process.stderr.isTTY && process.stderr.write('.');
}
