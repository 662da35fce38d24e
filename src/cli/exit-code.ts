/** How the commands of `acg` end: exit codes, and what goes to stderr. */

import { ConfigError } from '../problems/problem.ts';

/** The command line asks for something that does not exist; the message names it. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/**
 * Runs a command and sets the exit code of the process: what the command returns, 64 for wrong
 * usage, 78 for a wrong configuration (sysexits), 1 for any other error. The error goes to stderr,
 * wrong usage with the usage.
 */
export async function exitWith(command: () => Promise<number>, usage: string): Promise<void> {
  try {
    process.exitCode = await command();
  } catch (thrown) {
    const isUsage = thrown instanceof UsageError || isOfParseArgs(thrown);
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    process.stderr.write(isUsage ? `${message}\n\n${usage}` : `${message}\n`);
    if (isUsage) process.exitCode = 64;
    else process.exitCode = thrown instanceof ConfigError ? 78 : 1;
  }
}

function isOfParseArgs(thrown: unknown): boolean {
  return thrown instanceof TypeError && 'code' in thrown && String(thrown.code).startsWith('ERR_PARSE_ARGS');
}
