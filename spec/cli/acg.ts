import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ended } from '../support/child.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';

const MAIN = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
/** The entry of a checkout, with the commands that no image has. */
const TOOLS = join(import.meta.dirname, '../../tools/acg.ts');

/** The end of a run of the command line. */
export interface CommandRun {
  readonly code: number | null;
  /** Lines of stdout. */
  readonly lines: readonly string[];
  readonly errors: string;
}

/**
 * Runs `acg` in this folder without this process's environment, and waits for its end. `env`: what
 * it has instead.
 */
export function acg(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandRun> {
  return runEntry(MAIN, folder, args, env);
}

/** The same for the commands of a checkout. */
export function acgOfCheckout(folder: string, args: readonly string[]): Promise<CommandRun> {
  return runEntry(TOOLS, folder, args, {});
}

async function runEntry(
  entry: string,
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CommandRun> {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: folder,
    env: { ...COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, errors]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  const closed = new Promise((resolve) => child.once('close', resolve));
  const { code } = await ended(child);
  await closed;
  const lines = Buffer.concat(out).toString().split('\n').filter(Boolean);
  return { code, lines, errors: Buffer.concat(errors).toString() };
}
