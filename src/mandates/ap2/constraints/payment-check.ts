/**
 * Compares a payment mandate with the purchase, its checkout mandate and its own limits (ap2 7.6,
 * step 14).
 */

import { keccak256 } from '../../../crypto/keccak.ts';
import { canonicalJson } from '../../../json/canonical.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import type { Recurrence } from '../../register/register.ts';
import type { Segment, VerifiedChain } from '../chain/chain.ts';
import type { Ap2Profile } from '../model/profile.ts';
import type { Purchase } from '../model/purchase.ts';
import { object } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import {
  budgetUnits,
  type NamedRule,
  periodStart,
  REFERENCE,
  readPaymentConstraints,
  readReferences,
} from './payment-constraints.ts';
import { checkInstrument, type PaymentMandate, readPaymentMandate } from './payment-mandate.ts';

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

/** What an open payment mandate allows beyond this use; undefined: nothing. */
export type Allowance = Recurrence | undefined;

/**
 * The payment mandate is for this checkout, this payment and this payer, and each of its open
 * mandates allows it. Returns what each of them allows beyond this use, root first.
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

/** Every reference names an open mandate of the checkout chain. */
function checkReferences(open: JsonObject, openCheckouts: readonly Segment[]): void {
  for (const reference of readReferences(open))
    if (!openCheckouts.some(({ sdHash }) => sdHash === reference))
      throw new Refused('payment_binding_mismatch', { constraint: REFERENCE });
}

/** Payee, currency, amount and account. */
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

/** What an open mandate fixed is the same in the closed one. */
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
