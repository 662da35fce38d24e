/** The limits of an open payment mandate, from the options of `mandate open`. */

import { UsageError } from '../../src/cli/program.ts';
import type { ReadChallenge } from './challenge.ts';
import {
  allowedInstruments,
  allowedPayees,
  amountRange,
  budget,
  type Constraint,
  FREQUENCIES,
  type Merchant,
  recurrence,
  reference,
} from './maker/constraints.ts';
import { type Options, wholeNumber } from './options.ts';

/** Digits behind the point of a dollar token. */
const DEFAULT_DECIMALS = 6;
const MOST_DECIMALS = 18;
const MOST_USES = 1_000_000;
const DECIMAL = /^(?:0|[1-9]\d{0,14})(?:\.\d{1,18})?$/;
const CAIP_10 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$/;

/** What the limits refer to. */
interface Context {
  readonly challenge: ReadChallenge | undefined;
  readonly merchant: Merchant;
  /** `sd_hash` of the open checkout mandate. */
  readonly openCheckout: string;
}

/** Undefined without `--max`. Amounts of the command line are display units. @throws UsageError */
export function limitsOf(options: Options, context: Context): readonly Constraint[] | undefined {
  const max = options.get('max');
  if (max === undefined) return withoutPayment(options);
  const { challenge, merchant, openCheckout } = context;
  const currency = options.get('currency') ?? challenge?.currency;
  if (currency === undefined) throw new UsageError('--max needs --currency, or a challenge');
  const decimals = decimalsOf(options, challenge);
  const limits = [amountRange(currency, minorUnits('max', max, decimals)), allowedPayees([merchant])];
  const payer = options.get('payer');
  if (payer !== undefined) limits.push(allowedInstruments([{ id: instrumentOf(payer), type: 'x402' }]));
  return [...limits, ...repeated(options, currency, decimals), reference(openCheckout)];
}

function withoutPayment(options: Options): undefined {
  const orphan = (['budget', 'every', 'uses', 'payer', 'currency', 'decimals'] as const).find(
    (name) => options.get(name) !== undefined,
  );
  if (orphan === undefined) return undefined;
  throw new UsageError(
    `--${orphan} is a limit of a payment mandate, which needs --max: the most that one payment may be`,
  );
}

/** A mandate that may be used again names how often and how much (ap2 7.3). */
function repeated(options: Options, currency: string, decimals: number): readonly Constraint[] {
  const [every, most, uses] = [options.get('every'), options.get('budget'), options.get('uses')];
  const budgets = most === undefined ? [] : [budget(currency, majorUnits(most, decimals))];
  if (every === undefined) {
    if (uses !== undefined)
      throw new UsageError('--uses counts uses of a mandate that may be used again: say --every too');
    return budgets;
  }
  if (most === undefined) throw new UsageError('--every needs --budget: what all payments together may be');
  const frequency = FREQUENCIES.find((one) => one === every.toUpperCase().replaceAll('-', '_'));
  if (frequency === undefined) throw new UsageError(`--every must be one of ${FREQUENCIES.join(', ')}`);
  return [...budgets, recurrence(frequency, uses === undefined ? undefined : wholeNumber('uses', uses, MOST_USES))];
}

function decimalsOf(options: Options, challenge: ReadChallenge | undefined): number {
  const text = options.get('decimals');
  if (text !== undefined) return text === '0' ? 0 : wholeNumber('decimals', text, MOST_DECIMALS);
  return (challenge === undefined ? undefined : decimalsIn(challenge)) ?? DEFAULT_DECIMALS;
}

/** The number of digits between the price in both units; undefined for a price of zero. */
function decimalsIn({ amount, total }: ReadChallenge): number | undefined {
  if (total === 0) return undefined;
  for (let decimals = 0; decimals <= MOST_DECIMALS; decimals += 1)
    if (moved(amount, decimals) === String(total)) return decimals;
  return undefined;
}

/** @throws UsageError */
function minorUnits(name: 'max' | 'budget', text: string, decimals: number): number {
  const value = DECIMAL.test(text) ? Number(moved(text, decimals)) : Number.NaN;
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(
    `--${name} must be an amount above zero with at most ${decimals} digits behind the point, such as 0.03, not ${JSON.stringify(text)}`,
  );
}

/** The amount itself, when it has minor units. @throws UsageError */
function majorUnits(text: string, decimals: number): number {
  minorUnits('budget', text, decimals);
  return Number(text);
}

/** The text with its point moved to the right; `NaN` when digits are left over. */
function moved(text: string, decimals: number): string {
  const [whole = '', fraction = ''] = text.split('.');
  const kept = fraction.replace(/0+$/, '');
  return kept.length > decimals ? 'NaN' : String(BigInt(`${whole}${kept.padEnd(decimals, '0')}`));
}

/** @throws UsageError */
function instrumentOf(payer: string): string {
  if (CAIP_10.test(payer)) return payer;
  throw new UsageError('--payer of an open mandate must be NETWORK:ADDRESS, such as eip155:84532:0x… (CAIP-10)');
}
