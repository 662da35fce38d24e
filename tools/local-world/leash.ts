/** Ends the child processes of a process that ends in any way. */

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';

/** A text, because a bundle is one folder without the files beside this module. */
const WATCHER = readFileSync(new URL('./leash-watcher.js', import.meta.url), 'utf8');

let holder: Writable | undefined;

/**
 * Ties a child process to this one: when this process ends in any way, also by kill -9, the child
 * is killed. An `exit` listener does not run then; a watcher sees its pipe close. One watcher
 * serves all children of a process.
 */
export function leash(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  holder ??= startWatcher();
  const watcher = holder;
  watcher.write(`+${pid}\n`);
  // The system may give the number to another process afterwards.
  child.once('exit', () => watcher.write(`-${pid}\n`));
}

function startWatcher(): Writable {
  const child = spawn(process.execPath, ['--eval', WATCHER], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const { stdin } = child;
  child.unref();
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  stdin.on('error', () => {
    holder = undefined;
  });
  return stdin;
}
