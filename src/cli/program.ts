/** The command line of `acg`: finds the command that is asked for and loads it alone. */

import { once } from 'node:events';
import { Command, CommanderError } from 'commander';
import release from '../../package.json' with { type: 'json' };
import { nearest } from '../problems/nearest.ts';
import { ConfigError } from '../problems/problem.ts';

/** A command as the list of all has it. */
interface CommandEntry {
  readonly name: string;
  /** The line of the list. */
  readonly summary: string;
  /** Loads the definition of the command: a check of a file needs no web server. */
  load(): Promise<Command>;
}

/** Commands under a heading of the list. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CommandEntry[];
}

/** The command that runs where none is named. */
const DEFAULT_COMMAND = 'serve';
/** Commands that run until they are stopped, and end in order. */
const RUNNING: ReadonlySet<string> = new Set([DEFAULT_COMMAND, 'dev', 'injector']);
const SHORT: ReadonlySet<string> = new Set(['--help', '-h', 'help', '--version', '-V']);

/**
 * Runs the command that `words` begin with. Its action sets `process.exitCode` where it ends with
 * another code than 0.
 * @throws UsageError for an unknown command; what the command throws
 */
export async function runProgram(words: readonly string[], groups: readonly CommandGroup[]): Promise<void> {
  const [first = DEFAULT_COMMAND, second] = words;
  const isShort =
    words.some((word) => SHORT.has(word)) || !RUNNING.has(first.startsWith('-') ? DEFAULT_COMMAND : first);
  if (isShort) process.stdout.off('error', closedPipe).on('error', closedPipe);
  if (first === '--help' || first === '-h' || (first === 'help' && second === undefined)) {
    process.stdout.write(overview(groups));
    return;
  }
  if (first === '--version' || first === '-V') {
    process.stdout.write(`${release.version}\n`);
    return;
  }
  if (first === 'help') return runProgram([...words.slice(1), '--help'], groups);
  const isNamed = words.length > 0 && !first.startsWith('-');
  const command = commandOf(isNamed ? first : DEFAULT_COMMAND, groups);
  await (await command.load()).parseAsync(isNamed ? words.slice(1) : words, { from: 'user' });
}

/** A reader that has enough, such as `head`, closes the pipe: that is no failure. */
function closedPipe({ code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`standard output cannot be written: ${message}\n`);
  process.exit(1);
}

/** @throws UsageError */
function commandOf(name: string, groups: readonly CommandGroup[]): CommandEntry {
  const commands = groups.flatMap((group) => group.commands);
  const found = commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  const meant = nearest(
    name,
    commands.map((command) => command.name),
  );
  const hint = meant === undefined ? 'acg --help lists the commands' : `did you mean ${meant}?`;
  throw new UsageError(`unknown command ${name}; ${hint}`);
}

function overview(groups: readonly CommandGroup[]): string {
  const names = groups.flatMap(({ commands }) => commands.map(({ name }) => name.length));
  const width = Math.max(...names) + 2;
  const sections = groups.map(({ title, commands }) =>
    [title, ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`)].join('\n'),
  );
  return `acg <command> [options]

${sections.join('\n\n')}

acg <command> --help has the options of one and an example; acg --version.
The image runs ${DEFAULT_COMMAND} without a command. The configuration is the file of
--config, else of AGENT_COMMERCE_CONFIG, else config.yaml.
Exit codes: 0 done, 1 failed, 64 wrong usage, 66 a file cannot be read,
69 a server does not answer, 78 the configuration is refused.
`;
}

/**
 * The definition of a command, to which its options and its action are added. `about`: sentences,
 * of any line length. `example`: a command line that works.
 */
export function defineCommand(name: string, about: string, example: string): Command {
  return usual(new Command(`acg ${name}`), about, example)
    .exitOverride()
    .configureOutput(faultsOf(name));
}

/** The definition of a command that needs one of its subcommands. */
export function defineCommandGroup(name: string, about: string, example: string): Command {
  const group = defineCommand(name, about, example).usage('<command> [options]').argument('[words...]');
  return group.action(([unknown]: readonly string[]) => {
    const names = group.commands.map((command) => command.name());
    const known = names.join(', ');
    if (unknown === undefined) throw new UsageError(`${name} needs a command: ${known}`);
    const meant = nearest(unknown, names);
    const hint = meant === undefined ? `there are ${known}` : `did you mean ${meant}?`;
    throw new UsageError(`unknown command ${name} ${unknown}; ${hint}`);
  });
}

/** A subcommand, run by `acg <group> <name>`; the list has the first clause of `about`. */
export function addSubcommand(group: Command, name: string, about: string, example: string): Command {
  const whole = `${group.name()} ${name}`.replace(/^acg /, '');
  return usual(group.command(name), about, example)
    .summary(/^[^.;]*/.exec(about)?.[0].replaceAll(/\s*\n\s*/g, ' ') ?? '')
    .configureOutput(faultsOf(whole));
}

function usual(command: Command, about: string, example: string): Command {
  return command
    .description(about.replaceAll(/\s*\n\s*/g, ' '))
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .addHelpText('after', `\nExample:\n  ${example}`);
}

/** One line for a fault of the command line. */
function faultsOf(name: string) {
  return {
    outputError: (text: string, write: (text: string) => void) =>
      write(`${faultLine(text)}; acg ${name} --help has the options\n`),
  };
}

/** The option of every command that reads the configuration. */
export const CONFIG_OPTION = ['-c, --config <file>', 'else AGENT_COMMERCE_CONFIG, else config.yaml'] as const;

/** Resolves at SIGTERM or SIGINT; a second signal ends the process at once. */
export async function signalled(): Promise<void> {
  const signals = ['SIGTERM', 'SIGINT'] as const;
  await Promise.race(signals.map((signal) => once(process, signal)));
  for (const signal of signals) process.once(signal, () => process.exit(1));
}

/** Collects the values of an option that may be repeated. */
export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Commander's message and its suggestion as one line, in the words of the other commands. */
function faultLine(text: string): string {
  return text
    .trim()
    .replace(/^error: /, '')
    .replace(/^required option '(.*)' not specified/, '$1 is missing')
    .replace(/^missing required argument '(.*)'/, '<$1> is missing')
    .replace(/\.$/, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/\(Did you mean (.*)\?\)$/, '(did you mean $1?)');
}

/** The exit codes of every command; those from 64 on are of sysexits.h. */
const EXIT_CODES = {
  done: 0,
  /** The command ran, and its check or its work failed. */
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

/** The exit code of an error, and its line; none where the line was printed already. */
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

const ISO_8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;
const AGO = /^(\d{1,6})(m|h|d)$/;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A whole number. @throws UsageError that names the option */
export function wholeNumber(text: string, option: string, least: number, most: number): number {
  const read = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(read >= least && read <= most)) throw new UsageError(`--${option} must be a number from ${least} to ${most}`);
  return read;
}

/** ISO 8601 in milliseconds, midnight UTC without a time of day; undefined for any other text. */
export function isoMilliseconds(text: string): number | undefined {
  const read = ISO_8601.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(read) ? undefined : read;
}

/** ISO 8601, or how long ago: 30m, 12h, 7d. Milliseconds. @throws UsageError */
export function pastMoment(text: string, option: string, nowMs: number): number {
  const [, count, unit = ''] = AGO.exec(text) ?? [];
  const read = count === undefined ? isoMilliseconds(text) : nowMs - Number(count) * (UNIT_MS[unit] ?? 0);
  if (read !== undefined) return read;
  throw new UsageError(`--${option} must be a time ago such as 30m, 12h or 7d, or ISO 8601 such as 2026-01-31`);
}

/** One of a closed list of words. @throws UsageError that names the likely one, else all */
export function oneOf(text: string, option: string, words: readonly string[]): string {
  if (words.includes(text)) return text;
  const meant = nearest(text, words);
  throw new UsageError(
    meant === undefined
      ? `--${option} must be one of ${words.join(', ')}`
      : `--${option} has no ${text}; did you mean ${meant}?`,
  );
}
