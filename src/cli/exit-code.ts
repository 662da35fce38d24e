/** How the commands of `acg` end: exit codes, and the one line on stderr that says why. */

import { CommanderError } from 'commander';
import { ConfigError } from '../problems/problem.ts';

/** The exit codes of every command; those from 64 on are of sysexits.h. */
const EXIT_CODES = {
  done: 0,
  /** It ran, and what it was asked for is not so, or failed. */
  failed: 1,
  /** The command line is wrong. */
  usage: 64,
  /** A file that it names cannot be read. */
  noInput: 66,
  /** A server that it needs does not answer. */
  unavailable: 69,
  /** The configuration is refused. */
  config: 78,
} as const;

/** The command line asks for something that does not exist; the message names it. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** A file that the command line names is not there, or not what it should be. */
export class NoInputError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoInputError';
  }
}

/** A server that a command needs does not answer, or not as what it should be. */
export class UnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnavailableError';
  }
}

/** Codes of the system for files, in words. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of this path is no folder',
  EISDIR: 'this is a folder, not a file',
  EACCES: 'this user may not open it',
  EPERM: 'this user may not open it',
};
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
]);

/** Runs a command and sets the exit code of the process. What a command throws goes to stderr. */
export async function exitWith(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (thrown) {
    const { code, line } = endOf(thrown);
    if (line !== undefined) process.stderr.write(`${line}\n`);
    process.exitCode = code;
  }
}

/** The exit code of what was thrown, and its line; none where it was printed already. */
function endOf(thrown: unknown): { readonly code: number; readonly line?: string } {
  // Help, version and faults of options; commander has printed them.
  if (thrown instanceof CommanderError) return { code: thrown.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.usage };
  const line = thrown instanceof Error ? thrown.message : String(thrown);
  if (thrown instanceof UsageError) return { code: EXIT_CODES.usage, line };
  if (thrown instanceof ConfigError) return { code: EXIT_CODES.config, line: thrown.message };
  if (thrown instanceof NoInputError) return { code: EXIT_CODES.noInput, line };
  if (thrown instanceof UnavailableError) return { code: EXIT_CODES.unavailable, line };
  const { code = '', path } = (thrown instanceof Error ? thrown : {}) as NodeJS.ErrnoException;
  const fault = FILE_FAULTS[code];
  if (path !== undefined && fault !== undefined) return { code: EXIT_CODES.noInput, line: `${path}: ${fault}` };
  return { code: UNREACHABLE.has(code) ? EXIT_CODES.unavailable : EXIT_CODES.failed, line };
}
