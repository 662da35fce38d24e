/** The command line of `acg`: finds the command that is asked for and loads it alone. */

import { Command } from 'commander';
import release from '../../package.json' with { type: 'json' };
import { nearest } from '../problems/nearest.ts';
import { UsageError } from './exit-code.ts';

/** A command as the list of all has it. */
interface CommandEntry {
  readonly name: string;
  /** What it does, in one line of the list. */
  readonly summary: string;
  /** Its definition. Loaded when it is asked for: a check of a file needs no web server. */
  load(): Promise<Command>;
}

/** Commands under a heading of the list. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CommandEntry[];
}

/** What runs where no command is named. */
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

/** The same for a command that is nothing without one of its subcommands. */
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

/** A subcommand, which `acg <name of the group> <name>` runs. The list shows its first clause. */
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

/** The option that every command has which reads the configuration. */
export const CONFIG_OPTION = ['-c, --config <file>', 'else AGENT_COMMERCE_CONFIG, else config.yaml'] as const;

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
