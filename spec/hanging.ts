/** Ends spec processes that hang: the time limit of the test runner does not end them. */

import { childrenOfPid } from './support/program.ts';

const LOOK_EVERY_MS = 5_000;

/**
 * Ends each process that this one starts and that runs for longer than `mostMs`. A loop of a test
 * that has timed out goes on, and keeps its process for good.
 * @param note is told the process id
 * @returns stops looking
 */
export function endHanging(mostMs: number, note: (pid: number) => void): () => void {
  const seen = new Map<number, number>();
  const look = (): void => {
    const now = performance.now();
    const running = new Set(childrenOfPid(process.pid));
    for (const pid of seen.keys()) if (!running.has(pid)) seen.delete(pid);
    for (const pid of running) {
      const since = seen.get(pid) ?? now;
      seen.set(pid, since);
      if (now - since < mostMs) continue;
      note(pid);
      process.kill(pid, 'SIGKILL');
    }
  };
  const timer = setInterval(look, Math.min(LOOK_EVERY_MS, mostMs));
  return () => clearInterval(timer);
}
