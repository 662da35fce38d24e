/** The options of `acg mandate`. */

import { type Command, Option } from 'commander';
import { repeated, UsageError } from '../../src/cli/program.ts';
import { FREQUENCIES } from './maker/constraints.ts';

/** All options; each command takes some of them. */
export const OPTIONS = {
  out: () => new Option('--out <path>', 'where to write'),
  keys: () => new Option('--keys <folder>', 'the folder that mandate keys wrote'),
  issuer: () => new Option('--issuer <id>', 'the name of the provider'),
  challenge: () => new Option('--challenge <file>', 'the body of the 402 or 403; - for stdin'),
  open: () => new Option('--open <file>', 'what mandate open wrote'),
  merchant: () => new Option('--merchant <id=name>', 'the merchant, where there is no challenge'),
  item: () => new Option('--item <id=title>', 'what may be bought; may be repeated').argParser(repeated),
  days: () => new Option('--days <n>', 'how long it holds; else 1 day'),
  max: () => new Option('--max <amount>', 'most that one purchase may cost, such as 0.03'),
  budget: () => new Option('--budget <amount>', 'most that all of them may cost together'),
  every: () => new Option('--every <frequency>', `one of ${FREQUENCIES.join(', ')}`),
  uses: () => new Option('--uses <n>', 'how many purchases in each of these times'),
  currency: () => new Option('--currency <code>', 'of --max and --budget, where there is no challenge'),
  decimals: () => new Option('--decimals <n>', 'of that currency'),
  payer: () => new Option('--payer <address>', 'who pays: 0x…; for open eip155:84532:0x…'),
} as const satisfies Readonly<Record<string, () => Option>>;

export type OptionName = keyof typeof OPTIONS;

/** The options of one command, by name. */
export interface Options {
  /** Arguments without a name. */
  readonly rest: readonly string[];
  /** Undefined where it was not given. */
  get(name: OptionName): string | undefined;
  /** @throws UsageError where it was not given */
  need(name: OptionName, what: string): string;
  /** `item`, which may be repeated. */
  readonly items: readonly string[];
}

/** What was given to a command. */
export function optionsOf(name: string, command: Command): Options {
  const values: Readonly<Record<string, unknown>> = command.opts();
  const get = (option: OptionName): string | undefined => {
    const value = values[option];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    rest: command.args,
    items: Array.isArray(values['item']) ? values['item'].map(String) : [],
    get,
    need(option, what) {
      const value = get(option);
      if (value === undefined || value === '') throw new UsageError(`mandate ${name} needs --${option}: ${what}`);
      return value;
    },
  };
}

/** A whole number above zero. @throws UsageError */
export function wholeNumber(name: OptionName, text: string, most: number): number {
  const value = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= most) return value;
  throw new UsageError(`--${name} must be a whole number from 1 to ${most}, not ${JSON.stringify(text)}`);
}
