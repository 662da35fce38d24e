/** Runs specs with a mutant loaded, to see whether one of them fails. */

import { spawn } from 'node:child_process';
import path from 'node:path';
import type { Mutant } from './sites.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const HOOK = path.join(import.meta.dirname, 'hook.ts');
/** A failed test in TAP. */
const FAILED = /^\s*not ok /m;

export type Fate = 'killed' | 'timeout' | 'survived';

/**
 * Runs these specs in one process in which the mutant is loaded (undefined: the code as it is), and
 * ends it with the first test that fails. A mutant that loops is ended after `timeoutMs`. @throws
 * never; a process that dies killed the mutant
 */
export function tried(mutant: Mutant | undefined, specs: readonly string[], timeoutMs: number): Promise<Fate> {
  const load = [
    // Without a test that lasts until all are loaded, the runner ends after the first specs.
    `import { test } from 'node:test';`,
    `const { promise, resolve } = Promise.withResolvers();`,
    `test('all specs are loaded', () => promise);`,
    ...specs.map((spec) => `await import(${JSON.stringify(path.join(ROOT, spec))});`),
    `resolve();`,
  ].join('\n');
  const hook = mutant === undefined ? [] : ['--import', HOOK];
  const args = [...hook, '--test-reporter=tap', '--input-type=module', '--eval', load];
  const changed =
    mutant === undefined ? {} : { MUTANT: JSON.stringify({ ...mutant, path: path.join(ROOT, mutant.file) }) };
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...changed },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return new Promise((done) => {
    let fate: Fate | undefined;
    let tail = '';
    const end = (how: Fate): void => {
      fate ??= how;
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => end('timeout'), timeoutMs);
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      tail = `${tail.slice(-200)}${chunk}`;
      if (FAILED.test(tail)) end('killed');
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      done(fate ?? (code === 0 ? 'survived' : 'killed'));
    });
  });
}
