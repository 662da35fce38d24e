/** `acg mandate`: its options and commands; a file of the same name does the work of each. */

import type { Command } from 'commander';
import { addSubcommand, defineCommandGroup } from '../../src/cli/program.ts';
import type { Closed } from './close.ts';
import { OPTIONS, type OptionName, type Options, optionsOf } from './options.ts';

interface MandateCommand {
  readonly about: string;
  readonly example: string;
  readonly options: readonly OptionName[];
  /** A word without a name. */
  readonly argument?: readonly [name: string, about: string];
  run(options: Options, nowSeconds: number): Promise<string | Closed>;
}

const OPEN_OPTIONS: readonly OptionName[] = [
  ...(['keys', 'out', 'challenge', 'merchant', 'item', 'days'] as const),
  ...(['max', 'currency', 'decimals', 'payer', 'budget', 'every', 'uses'] as const),
];

const COMMANDS: Readonly<Record<string, MandateCommand>> = {
  keys: {
    about: `Makes TEST keys (files 0600) of a provider, an agent and a merchant, and prints the configuration that makes a gateway
trust them.`,
    example: 'acg mandate keys --out keys',
    options: ['out', 'issuer'],
    run: async (options) =>
      (await import('./test-keys.ts')).makeKeys(options.need('out', 'the folder for the keys'), options.get('issuer')),
  },
  direct: {
    about: 'The provider signs one purchase; prints the value of Agent-Authorization.',
    example: 'acg mandate direct --keys keys --challenge 402.json',
    options: ['keys', 'challenge', 'payer'],
    run: async (options, now) => (await import('./close.ts')).direct(options, now),
  },
  open: {
    about: `The provider lets the agent buy one thing of a challenge, or of --merchant and --item; with --max also pay,
with --every again and again, while --budget lasts.`,
    example: 'acg mandate open --keys keys --challenge 402.json --out open.json',
    options: OPEN_OPTIONS,
    run: async (options, now) => (await import('./open.ts')).open(options, now),
  },
  close: {
    about: 'The agent closes what open wrote, for one purchase; prints the value of Agent-Authorization.',
    example: 'acg mandate close --keys keys --open open.json --challenge 402.json',
    options: ['keys', 'open', 'challenge', 'payer'],
    run: async (options, now) => (await import('./close.ts')).close(options, now),
  },
  show: {
    about: 'Says what a header or a receipt says, and verifies nothing.',
    example: 'acg mandate show - < header.txt',
    options: [],
    argument: ['<header>', 'the value, or - for stdin'],
    run: async (options) => (await import('./show.ts')).show(options),
  },
};

/** Results go to standard output, notes to standard error. */
export function mandateCommand(): Command {
  const about = `AP2 mandates with TEST keys, for developers of agents. A challenge is the body of the 402 or 403 with which a resource asks
for a mandate; it may stand in an answer of MCP or A2A. deploy/examples/mandates goes from nothing to an accepted mandate.`;
  const command = defineCommandGroup('mandate', about, 'acg mandate direct --keys keys --challenge 402.json');
  for (const [name, { about: does, example, options, argument, run }] of Object.entries(COMMANDS)) {
    const own = addSubcommand(command, name, does, example);
    for (const option of options) own.addOption(OPTIONS[option]());
    if (argument !== undefined) own.argument(...argument);
    own.action(async () => {
      const result = await run(optionsOf(name, own), Math.floor(Date.now() / 1_000));
      print(result);
    });
  }
  return command;
}

function print(result: string | Closed): void {
  if (typeof result === 'string') {
    process.stdout.write(result);
    return;
  }
  for (const note of result.notes) process.stderr.write(`${note}\n`);
  process.stdout.write(`${result.header}\n`);
}
