/** Reads the constraints of an open payment mandate (ap2 2.2) as rules for one payment. */

import type { Json, JsonObject } from '../../../json/types.ts';
import { minorUnitsOfNumber } from '../model/purchase.ts';
import { identity, list, object, optional, text, whole } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import { checkHas, type NamedConstraint, named, readConstraints } from './constraints.ts';
import {
  type PaymentMandate,
  readInstrument,
  readMerchants,
  readMoment,
  readPisp,
  sameInstrument,
  samePisp,
} from './payment-mandate.ts';

const DAY_SECONDS = 86_400;

/** How often a mandate may be used (ap2 2.2). */
const FREQUENCIES = ['ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** Weeks, and pairs of weeks, count from Monday 1969-12-29: day 0 (1970-01-01) was a Thursday. */
const MONDAY_BEFORE = -3;

/** A constraint of an open payment mandate (ap2 2.2). */
type PaymentRule =
  /** A condition on this one payment. `now`: unix seconds. */
  | { readonly kind: 'demand'; readonly holds: (payment: PaymentMandate, now: number) => boolean }
  /** Checked already, with `readReferences`. */
  | { readonly kind: 'reference' }
  /** Major units, as in JSON. */
  | { readonly kind: 'budget'; readonly currency: string; readonly max: number }
  | { readonly kind: 'recurrence'; readonly frequency: Frequency; readonly maxOccurrences: number | undefined };

export type NamedRule = NamedConstraint<PaymentRule>;

/** Names the open checkout mandate that belongs to an open payment mandate. */
export const REFERENCE = 'payment.reference';

const READERS: Readonly<Record<string, (constraint: JsonObject) => PaymentRule>> = {
  'payment.amount_range': ({ currency, max, min }) => {
    const unit = identity(currency);
    const most = whole(max, 0);
    const least = optional(min, (value) => whole(value, Number.MIN_SAFE_INTEGER)) ?? 0;
    return demand((payment) => payment.currency === unit && payment.amount >= least && payment.amount <= most);
  },
  'payment.allowed_payees': ({ allowed }) => {
    const payees = readMerchants(allowed);
    return demand(({ payeeId }) => payees.some(({ id }) => id === payeeId));
  },
  'payment.allowed_payment_instruments': ({ allowed }) => {
    const instruments = list(allowed).map(readInstrument);
    return demand(({ instrument }) => instruments.some((one) => sameInstrument(one, instrument)));
  },
  'payment.allowed_pisps': ({ allowed }) => {
    const pisps = list(allowed).map(readPisp);
    return demand(({ pisp }) => pisp !== undefined && pisps.some((one) => samePisp(one, pisp)));
  },
  'payment.execution_date': ({ not_before, not_after }) => {
    const first = optional(not_before, readDate)?.first ?? Number.NEGATIVE_INFINITY;
    const last = optional(not_after, readDate)?.last ?? Number.POSITIVE_INFINITY;
    // The payment is made now: now and the date of the mandate both have to lie in the window.
    return demand(({ executionDate }, now) => {
      const at = now * 1_000;
      const named = executionDate ?? { first: at, last: at };
      return first <= Math.min(at, named.first) && Math.max(at, named.last) <= last;
    });
  },
  [REFERENCE]: () => ({ kind: 'reference' }),
  'payment.budget': ({ currency, max }) => {
    if (typeof max !== 'number' || !(max >= 0)) throw new Refused('claims_invalid');
    return { kind: 'budget', currency: identity(currency), max };
  },
  'payment.agent_recurrence': ({ frequency, max_occurrences }) => ({
    kind: 'recurrence',
    frequency: readFrequency(frequency),
    maxOccurrences: optional(max_occurrences, (most) => whole(most, 1)),
  }),
};

export const PAYMENT_CONSTRAINTS: readonly string[] = Object.keys(READERS);

/**
 * `sd_hash` of each open checkout mandate that this open payment mandate belongs to; AP2 demands
 * one. Read apart, because references are checked before other constraints (ap2 7.6, step 14).
 * @throws Refused claims_invalid
 */
export function readReferences(open: JsonObject): readonly string[] {
  const references = list(open['constraints'])
    .map(object)
    .filter(({ type }) => text(type) === REFERENCE);
  return named(REFERENCE, () => {
    if (references.length === 0) throw new Refused('claims_invalid');
    return references.map(({ conditional_transaction_id }) => identity(conditional_transaction_id));
  });
}

/** The constraints of one open payment mandate, without its references. @throws Refused */
export function readPaymentConstraints(open: JsonObject): readonly NamedRule[] {
  const rules = readConstraints(open, READERS);
  const recurs = rules.some(({ rule }) => rule.kind === 'recurrence');
  // A mandate that may be used again limits what one use and all uses cost (ap2 7.3).
  for (const needed of recurs ? ['payment.amount_range', 'payment.budget'] : []) checkHas(rules, needed);
  return rules;
}

/** Minor units of a budget in the payment's currency. @throws Refused claims_invalid */
export function budgetUnits(max: number, exponent: number): number {
  const units = minorUnitsOfNumber(max, exponent);
  if (units === undefined) throw new Refused('claims_invalid', { constraint: 'payment.budget' });
  return units;
}

/**
 * When the calendar period (UTC) of `now` began, unix seconds; undefined where uses need not be
 * apart (ap2 7.3). Periods do not roll: a monthly use may be on the 31st and then on the 1st.
 */
export function periodStart(frequency: Frequency, now: number): number | undefined {
  const at = new Date(now * 1_000);
  const year = at.getUTCFullYear();
  const month = at.getUTCMonth();
  switch (frequency) {
    case 'ON_DEMAND':
      return undefined;
    case 'DAILY':
      return blockStart(now, 1, 0);
    case 'WEEKLY':
      return blockStart(now, 7, MONDAY_BEFORE);
    case 'BIWEEKLY':
      return blockStart(now, 14, MONDAY_BEFORE);
    case 'MONTHLY':
      return Date.UTC(year, month) / 1_000;
    case 'QUARTERLY':
      return Date.UTC(year, month - (month % 3)) / 1_000;
    case 'ANNUALLY':
      return Date.UTC(year, 0) / 1_000;
  }
}

/** Start of the block of so many days that holds `now`; day `anchor` starts one (0: 1970-01-01). */
function blockStart(now: number, days: number, anchor: number): number {
  const day = Math.floor(now / DAY_SECONDS);
  return (Math.floor((day - anchor) / days) * days + anchor) * DAY_SECONDS;
}

function demand(holds: (payment: PaymentMandate, now: number) => boolean): PaymentRule {
  return { kind: 'demand', holds };
}

function readDate(value: Json) {
  return readMoment(text(value));
}

/** An unknown frequency may be rarer than all known ones. */
function readFrequency(value: Json | undefined): Frequency {
  const named = text(value);
  const frequency = FREQUENCIES.find((one) => one === named);
  if (frequency === undefined) throw new Refused('constraint_unresolved');
  return frequency;
}
