/**
 * The payment mandate (ap2 7.6, step 14): reads the closed one and the constraints of open ones
 * (ap2 2.1, ap2 2.2), and compares it with the purchase, its checkout mandate and its limits.
 */

import { keccak256 } from '../../crypto/hash.ts';
import type { Json, JsonObject } from '../../json/json.ts';
import { canonicalJson } from '../../json/json.ts';
import type { Recurrence } from '../register.ts';
import type { Segment, VerifiedChain } from './chain.ts';
import { type Ap2Profile, minorUnitsOfNumber, type Purchase, type PurchasePayment, sameAddress } from './purchase.ts';
import {
  checkHas,
  identity,
  list,
  type NamedConstraint,
  named,
  object,
  optional,
  readConstraints,
  text,
  whole,
} from './readers.ts';
import { Refused } from './reasons.ts';

/** Members of a closed payment mandate that an open one may fix (ap2 2.1). */
const PRESETS = [
  'transaction_id',
  'payee',
  'payment_amount',
  'payment_instrument',
  'pisp',
  'execution_date',
  'risk_data',
] as const;

/** What a payment mandate is compared with. */
export interface PaymentSubject {
  readonly purchase: Purchase;
  /** Minor units of the price. */
  readonly units: number;
  /** The payment mandate as received. */
  readonly presentation: string;
  /** The checkout mandate that it came with, and the hash of its checkout. */
  readonly checkout: VerifiedChain;
  readonly checkoutHash: string;
  /** Unix seconds. */
  readonly now: number;
}

/** Uses that an open payment mandate allows beyond this one; undefined: none. */
export type Allowance = Recurrence | undefined;

/**
 * Checks that the payment mandate is for this checkout, this payment and this payer, and that its
 * open mandates allow it. Returns the allowance of each open mandate, root first.
 * @throws Refused
 */
export function checkPayment(chain: VerifiedChain, subject: PaymentSubject, profile: Ap2Profile): readonly Allowance[] {
  const { purchase, now } = subject;
  const closed = object(chain.closed.mandate);
  const payment = readPaymentMandate(closed);
  const opens = chain.open.map(({ mandate }) => object(mandate));
  if (payment.transactionId !== subject.checkoutHash) throw new Refused('payment_binding_mismatch');
  for (const open of opens) checkReferences(open, subject.checkout.open);
  checkTerms(payment, subject, profile);
  for (const open of opens) checkEmbeddedDefaults(open, closed);
  const limits = opens.map(readPaymentConstraints);
  for (const rules of limits) checkDemands(rules, payment, now);
  checkDate(payment, now + profile.clockSkewSeconds);
  if (profile.policy.bindPaymentNonce) checkBoundNonce(subject.presentation, purchase.payment?.nonce);
  return limits.map((rules) => allowanceOf(rules, payment, now, profile));
}

/** Checks that every reference names an open mandate of the checkout chain. */
function checkReferences(open: JsonObject, openCheckouts: readonly Segment[]): void {
  for (const reference of readReferences(open))
    if (!openCheckouts.some(({ sdHash }) => sdHash === reference))
      throw new Refused('payment_binding_mismatch', { constraint: REFERENCE });
}

/** Compares payee, currency, amount and account. */
function checkTerms(payment: PaymentMandate, { purchase, units }: PaymentSubject, profile: Ap2Profile): void {
  if (payment.payeeId !== profile.merchant.id) throw new Refused('payee_mismatch');
  if (payment.currency !== purchase.price.currency) throw new Refused('currency_mismatch');
  if (payment.amount !== units) throw new Refused('amount_mismatch');
  checkInstrument(payment.instrument, purchase.payment);
}

/** Money moves now, so a mandate for a later day does not allow it. `latest`: unix seconds. */
function checkDate({ executionDate }: PaymentMandate, latest: number): void {
  if (executionDate !== undefined && executionDate.first > latest * 1_000) throw new Refused('not_yet_valid');
}

/** Checks that the closed mandate has each member that an open one fixed. */
function checkEmbeddedDefaults(open: JsonObject, closed: JsonObject): void {
  for (const name of PRESETS) {
    const preset = open[name];
    if (preset !== undefined && !same(preset, closed[name])) throw new Refused('preset_mismatch');
  }
}

function same(preset: Json, value: Json | undefined): boolean {
  return value !== undefined && canonicalJson(preset) === canonicalJson(value);
}

/** With `bindPaymentNonce` the nonce of the payment is the hash of the presentation (ap2 4). */
function checkBoundNonce(presentation: string, nonce: string | undefined): void {
  const bound = Buffer.from(keccak256(Buffer.from(presentation, 'utf8'))).toString('hex');
  if (nonce?.toLowerCase() !== `0x${bound}`) throw new Refused('payment_binding_mismatch');
}

function checkDemands(rules: readonly NamedRule[], payment: PaymentMandate, now: number): void {
  for (const { type, rule } of rules) {
    const holds =
      rule.kind === 'demand' ? rule.holds(payment, now) : rule.kind !== 'budget' || rule.currency === payment.currency;
    if (!holds) throw new Refused('constraint_violated', { constraint: type });
  }
}

/** Of several limits the strictest counts: smallest budget, fewest uses, longest period. */
function allowanceOf(
  rules: readonly NamedRule[],
  payment: PaymentMandate,
  now: number,
  profile: Ap2Profile,
): Allowance {
  let budget: number | undefined;
  let recurs: Pick<Recurrence, 'maxOccurrences' | 'periodStart'> | undefined;
  for (const { rule } of rules) {
    if (rule.kind === 'budget')
      budget = least(budget, budgetUnits(rule.max, profile.exponents.get(rule.currency) ?? 0));
    if (rule.kind === 'recurrence')
      recurs = {
        maxOccurrences: least(recurs?.maxOccurrences, rule.maxOccurrences),
        periodStart: least(recurs?.periodStart, periodStart(rule.frequency, now)),
      };
  }
  if (budget !== undefined && payment.amount > budget)
    throw new Refused('budget_exceeded', { constraint: 'payment.budget' });
  if (recurs === undefined || budget === undefined) return undefined;
  return { units: String(payment.amount), budgetUnits: String(budget), ...recurs };
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

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

type NamedRule = NamedConstraint<PaymentRule>;

/** Names the open checkout mandate that belongs to an open payment mandate. */
const REFERENCE = 'payment.reference';

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
function readReferences(open: JsonObject): readonly string[] {
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

const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** A time without its zone could be one of 27 hours. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;
const EIP_155 = 'eip155:';

/** A closed payment mandate: one payment for one checkout. */
export interface PaymentMandate {
  /** The hash of the checkout. */
  readonly transactionId: string;
  readonly payeeId: string;
  /** Minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly instrument: Instrument;
  readonly pisp: Pisp | undefined;
  /** Undefined: now. */
  readonly executionDate: Moment | undefined;
}

/** The payment instrument: for x402 the account (CAIP-10), `<CAIP-2>:<address>` (ap2 7.3). */
interface Instrument {
  readonly id: string;
  readonly type: string;
}

/** A payment initiation service; two are the same when all three names are. */
interface Pisp {
  readonly legalName: string;
  readonly brandName: string;
  readonly domainName: string;
}

/** A merchant as AP2 names one; only the id identifies it. An empty id equals no merchant's. */
interface MerchantName {
  readonly id: string;
}

/** A time, or the day of a date without a time. Unix milliseconds, both ends included. */
interface Moment {
  readonly first: number;
  readonly last: number;
}

/** @throws Refused claims_invalid */
function readPaymentMandate(closed: JsonObject): PaymentMandate {
  const { transaction_id, payee, payment_amount, payment_instrument, pisp, execution_date, risk_data } = closed;
  optional(risk_data, object);
  return {
    transactionId: identity(transaction_id),
    payeeId: readMerchant(payee).id,
    ...readAmount(payment_amount),
    instrument: readInstrument(payment_instrument),
    pisp: optional(pisp, readPisp),
    executionDate: optional(execution_date, (date) => readMoment(text(date))),
  };
}

function readAmount(value: Json | undefined): { readonly amount: number; readonly currency: string } {
  const { amount, currency } = object(value);
  return { amount: whole(amount, 0), currency: identity(currency) };
}

/** The disclosed merchants of a list. @throws Refused claims_invalid */
export function readMerchants(allowed: Json | undefined): readonly MerchantName[] {
  return list(allowed).map(readMerchant);
}

function readMerchant(value: Json | undefined): MerchantName {
  const { id, name, website } = object(value);
  text(name);
  optional(website, text);
  return { id: text(id) };
}

/** @throws Refused claims_invalid */
function readInstrument(value: Json | undefined): Instrument {
  const { id, type, description } = object(value);
  optional(description, text);
  return { id: identity(id), type: identity(type) };
}

/**
 * Compares type and id: one id may be a card and an account (AP2 issue 320). Accounts of EIP-155
 * are numbers, whatever their case.
 */
export function sameInstrument(one: Instrument, other: Instrument): boolean {
  if (one.type !== other.type) return false;
  if (one.id === other.id) return true;
  return one.type === 'x402' && one.id.startsWith(EIP_155) && sameAddress(one.id, other.id);
}

/**
 * Checks that the mandate names the account that the verified proof pays from.
 * @throws Refused payment_method_mismatch, payer_mismatch
 */
export function checkInstrument({ id, type }: Instrument, payment: PurchasePayment | undefined): void {
  if (payment === undefined || type !== payment.method) throw new Refused('payment_method_mismatch');
  const { network, payer } = payment;
  if (!id.startsWith(`${network}:`)) throw new Refused('payment_method_mismatch');
  const address = id.slice(network.length + 1);
  const same = network.startsWith(EIP_155) ? sameAddress(address, payer) : address === payer;
  if (!same) throw new Refused('payer_mismatch');
}

/** @throws Refused claims_invalid */
function readPisp(value: Json): Pisp {
  const { legal_name, brand_name, domain_name } = object(value);
  return { legalName: text(legal_name), brandName: text(brand_name), domainName: text(domain_name) };
}

function samePisp(one: Pisp, other: Pisp): boolean {
  return one.legalName === other.legalName && one.brandName === other.brandName && one.domainName === other.domainName;
}

/** Reads ISO 8601: a date (a day of UTC), or a time with zone. @throws Refused claims_invalid */
export function readMoment(text: string): Moment {
  const day = DATE.test(text);
  const first = day || DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  // The parser moves days that a month does not have to the next month.
  if (Number.isNaN(first) || !isCalendarDay(text.slice(0, 10))) throw new Refused('claims_invalid');
  return { first, last: day ? first + DAY_MS - 1 : first };
}

function isCalendarDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}
