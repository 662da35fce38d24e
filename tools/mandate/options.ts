/** The command line of `acg mandate`. */

import { parseArgs } from 'node:util';
import { UsageError } from '../../src/cli/exit-code.ts';

/** All options; each command takes some of them. */
const OPTIONS = {
  out: { type: 'string' },
  keys: { type: 'string' },
  issuer: { type: 'string' },
  challenge: { type: 'string' },
  open: { type: 'string' },
  merchant: { type: 'string' },
  item: { type: 'string', multiple: true },
  days: { type: 'string' },
  max: { type: 'string' },
  budget: { type: 'string' },
  every: { type: 'string' },
  uses: { type: 'string' },
  currency: { type: 'string' },
  decimals: { type: 'string' },
  payer: { type: 'string' },
} as const;

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

/** @throws UsageError for an option of another command, TypeError for an unknown one */
export function readOptions(command: string, args: readonly string[], allowed: readonly OptionName[]): Options {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const given = Object.keys(values) as OptionName[];
  const foreign = given.find((name) => !allowed.includes(name));
  if (foreign !== undefined) {
    const own = allowed.map((name) => `--${name}`).join(', ');
    throw new UsageError(
      `--${foreign} does not belong to mandate ${command}${own === '' ? '' : `, which takes ${own}`}`,
    );
  }
  const get = (name: OptionName): string | undefined => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    rest: positionals,
    items: values.item ?? [],
    get,
    need(name, what) {
      const value = get(name);
      if (value === undefined || value === '') throw new UsageError(`mandate ${command} needs --${name}: ${what}`);
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
