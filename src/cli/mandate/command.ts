import { UsageError } from '../usage-error.ts';
import type { Closed } from './close.ts';
import { type OptionName, type Options, readOptions } from './options.ts';

export const MANDATE_USAGE = `acg mandate <command>: AP2 mandates with TEST keys, for developers of agents

  keys   --out DIR [--issuer ID]
         makes TEST keys (files 0600); prints the configuration that makes a gateway trust them
  open   --keys DIR --out FILE (--challenge FILE | --merchant ID=NAME --item ID=TITLE ...) [--days N]
         [--max AMOUNT [--currency CODE] [--decimals N] [--payer NETWORK:ADDRESS]
          [--budget AMOUNT] [--every FREQUENCY [--uses N]]]
         lets the agent buy those things; with --max it may pay that much a time, with --every again
  close  --keys DIR --open FILE --challenge FILE|- [--payer ADDRESS]
         closes them for the checkout in a 402 or 403 body; prints the value of Agent-Authorization
  direct --keys DIR --challenge FILE|- [--payer ADDRESS]
         a mandate for that very purchase, signed by the provider; prints the value of Agent-Authorization
  show   HEADER|-
         what a header or a receipt says; verifies nothing
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
 * `acg mandate ...`. What is to be used goes to standard output, notes to standard error. Returns the exit code, 64 for wrong usage.
 * @throws Error for files and challenges that cannot be used
 */
export async function mandate(args: readonly string[]): Promise<number> {
  try {
    return await obeyed(args);
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

async function obeyed(args: readonly string[]): Promise<number> {
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
