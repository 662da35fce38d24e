/** Waits for the end of child processes. */

import type { ChildProcess } from 'node:child_process';

/** How a process ended: its exit code, or the signal that ended it. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Resolves when the process has ended, at once when it already has. */
export function ended(child: ChildProcess): Promise<Ending> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
}

/** SIGTERM, and SIGKILL when the process is still there after `graceMs`. */
export async function terminate(child: ChildProcess, graceMs: number): Promise<Ending> {
  const ending = ended(child);
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  try {
    return await ending;
  } finally {
    clearTimeout(timer);
  }
}
