/** One process at a time: specs run in several, and one of them fetches what all need. */

import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 200;
const TIMEOUT_MS = 300_000;

/**
 * Works while this process has the lock. A lock whose process is gone counts for nothing.
 * @param lock the file that stands for it
 * @throws Error when another process has it for too long
 */
export async function locked(lock: string, work: () => void | Promise<void>): Promise<void> {
  for (const deadline = Date.now() + TIMEOUT_MS; !taken(lock); await delay(POLL_MS))
    if (Date.now() > deadline) throw new Error(`another process has had ${lock} for too long`);
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function taken(lock: string): boolean {
  try {
    const file = openSync(lock, 'wx');
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch {
    if (!ownerAlive(lock)) rmSync(lock, { force: true });
    return false;
  }
}

function ownerAlive(lock: string): boolean {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    // Not written yet: its owner is between two calls.
    if (pid === 0) return true;
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM';
  }
}
