/** Runs one short storm in a process of its own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { terminate } from '../../tools/local-world/child.ts';
import type { Report } from './report.ts';

const MAIN = join(import.meta.dirname, 'main.ts');
/** Longest time from the report to the exit of the process, milliseconds. */
const FAREWELL_MS = 2_000;

/**
 * The short storm in a process of its own, which is killed once it has printed its report: hundreds
 * of processes, sockets and native handles end in it, and none of them may delay the report.
 * @throws Error with its last words
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
  const printed = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  // Not its exit: its output may arrive after that.
  const silent = once(child, 'close').then(([code, signal]) => {
    throw new Error(`the storm ended with ${signal ?? code} and printed nothing\n${words.join('\n')}`);
  });
  silent.catch(() => undefined);
  try {
    return JSON.parse(await Promise.race([printed, silent])) as Report;
  } finally {
    await terminate(child, FAREWELL_MS);
  }
}
