/** `acg mandate`: its usage and commands; a file of the same name does the work of each. */

import { UsageError } from '../../src/cli/exit-code.ts';
import type { Closed } from './close.ts';
import { FREQUENCIES } from './maker/constraints.ts';
import { type OptionName, type Options, readOptions } from './options.ts';

const MANDATE_USAGE = `acg mandate <command>: AP2 mandates with TEST keys, for developers of agents

  keys   --out DIR [--issuer ID]
         makes TEST keys (files 0600) of a provider, an agent and a merchant; prints the configuration that makes a gateway trust them
  direct --keys DIR --challenge FILE|- [--payer ADDRESS]
         the provider signs one purchase; prints the value of Agent-Authorization
  open   --keys DIR --out FILE (--challenge FILE | --merchant ID=NAME --item ID=TITLE ...) [--days N]
         [--max AMOUNT [--currency CODE] [--decimals N] [--payer NETWORK:ADDRESS]
          [--budget AMOUNT] [--every FREQUENCY [--uses N]]]
         the provider lets the agent buy one of those things, for N days (1); with --max also pay, at most that much a time;
         with --every again and again, while --budget lasts
  close  --keys DIR --open FILE --challenge FILE|- [--payer ADDRESS]
         the agent closes what open wrote, for one purchase; prints the value of Agent-Authorization
  show   HEADER|-
         what a header or a receipt says; verifies nothing

A challenge is the body of the 402 or 403 with which a resource asks for a mandate; it may stand in an answer of MCP or A2A.
--payer is the address that signs the payment, 0x...: direct and close name it in a payment mandate; open, where it stands with its
network (eip155:84532:0x...), lets no other account pay.
AMOUNT is in units of the currency, such as 0.03. FREQUENCY is one of
${FREQUENCIES.join(', ')}.

deploy/examples/mandates/README.md goes from nothing to an accepted mandate.
`;

interface Command {
  readonly options: readonly OptionName[];
  run(options: Options, nowSeconds: number): Promise<string | Closed>;
}

const OPEN_OPTIONS: readonly OptionName[] = [
  ...(['keys', 'out', 'challenge', 'merchant', 'item', 'days'] as const),
  ...(['max', 'currency', 'decimals', 'payer', 'budget', 'every', 'uses'] as const),
];

const COMMANDS: Readonly<Record<string, Command>> = {
  keys: {
    options: ['out', 'issuer'],
    run: async (options) => (await import('./test-keys.ts')).makeKeys(options),
  },
  open: {
    options: OPEN_OPTIONS,
    run: async (options, now) => (await import('./open.ts')).open(options, now),
  },
  close: {
    options: ['keys', 'open', 'challenge', 'payer'],
    run: async (options, now) => (await import('./close.ts')).close(options, now),
  },
  direct: {
    options: ['keys', 'challenge', 'payer'],
    run: async (options, now) => (await import('./close.ts')).direct(options, now),
  },
  show: { options: [], run: async (options) => (await import('./show.ts')).show(options) },
};

/**
 * Results go to standard output, notes to standard error. Returns the exit code, 64 for wrong
 * usage.
 * @throws Error for files and challenges that cannot be used
 */
export async function mandate(args: readonly string[]): Promise<number> {
  try {
    return await run(args);
  } catch (thrown) {
    if (!isMisuse(thrown)) throw thrown;
    process.stderr.write(`${thrown.message}\n\nacg mandate --help says what there is\n`);
    return 64;
  }
}

function isMisuse(thrown: unknown): thrown is Error {
  if (thrown instanceof UsageError) return true;
  return thrown instanceof TypeError && 'code' in thrown && String(thrown.code).startsWith('ERR_PARSE_ARGS');
}

async function run(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === 'help' || args.includes('--help') || args.includes('-h')) {
    process.stdout.write(MANDATE_USAGE);
    return name === undefined ? 64 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined)
    throw new UsageError(`unknown command mandate ${name}; there are ${Object.keys(COMMANDS).join(', ')}`);
  const options = readOptions(name, rest, command.options);
  if (name !== 'show' && options.rest.length > 0) throw new UsageError(`unexpected argument ${options.rest[0]}`);
  const result = await command.run(options, Math.floor(Date.now() / 1_000));
  if (typeof result === 'string') {
    process.stdout.write(result);
    return 0;
  }
  for (const note of result.notes) process.stderr.write(`${note}\n`);
  process.stdout.write(`${result.header}\n`);
  return 0;
}
