/** Runs one short storm in a process of its own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { terminate } from '../../spec/support/child.ts';
import type { Report } from './report.ts';

const MAIN = join(import.meta.dirname, 'main.ts');
/** A storm that has told its result has nothing left to do, milliseconds. */
const FAREWELL_MS = 2_000;

/**
 * The short storm in a process of its own, which is ended once it has told its result: hundreds of
 * processes, sockets and native handles die in it, and none of them may hold up whoever waits for
 * the report. @throws Error with its last words
 */
export async function shortStorm(seed: number): Promise<Report> {
  const child = spawn(process.execPath, [MAIN, '--short', '--seed', String(seed)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const words: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    words.push(line);
    if (words.length > 40) words.shift();
  });
  const told = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  // Not its exit: what it printed may arrive after that.
  const silent = once(child, 'close').then(([code, signal]) => {
    throw new Error(`the storm ended with ${signal ?? code} and told nothing\n${words.join('\n')}`);
  });
  silent.catch(() => undefined);
  try {
    return JSON.parse(await Promise.race([told, silent])) as Report;
  } finally {
    await terminate(child, FAREWELL_MS);
  }
}
