import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { type Frequency, periodStart } from '../../../../src/mandates/ap2/payment-mandate.ts';
import {
  allowedInstruments,
  allowedPayees,
  amountRange,
  budget,
  type Constraint,
  plain,
  recurrence,
} from '../../../../tools/mandate/maker/constraints.ts';
import { type Changes, withDisclosureTexts, withMandate } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { MERCHANT, purchaseWith } from '../../../support/ap2/purchase.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import { withReference } from '../../../support/ap2/wishes.ts';
import { type Row, rows } from '../table.ts';

/** A moment, and when the period began that it lies in. */
const PERIODS: readonly (readonly [Frequency, string, string])[] = [
  ['DAILY', '2026-11-20T00:00:00Z', '2026-11-20'],
  ['DAILY', '2026-11-20T23:59:59Z', '2026-11-20'],
  ['WEEKLY', '2026-11-16T00:00:00Z', '2026-11-16'],
  ['WEEKLY', '2026-11-15T23:59:59Z', '2026-11-09'],
  ['WEEKLY', '2026-11-22T23:59:59Z', '2026-11-16'],
  ['WEEKLY', '1970-01-01T00:00:00Z', '1969-12-29'],
  ['BIWEEKLY', '1970-01-11T23:59:59Z', '1969-12-29'],
  ['BIWEEKLY', '1970-01-12T00:00:00Z', '1970-01-12'],
  ['BIWEEKLY', '2026-11-20T12:00:00Z', '2026-11-16'],
  ['BIWEEKLY', '2026-11-23T00:00:00Z', '2026-11-16'],
  ['MONTHLY', '2026-11-01T00:00:00Z', '2026-11-01'],
  ['MONTHLY', '2026-11-30T23:59:59Z', '2026-11-01'],
  ['MONTHLY', '2028-02-29T12:00:00Z', '2028-02-01'],
  ['QUARTERLY', '2026-03-31T23:59:59Z', '2026-01-01'],
  ['QUARTERLY', '2026-04-01T00:00:00Z', '2026-04-01'],
  ['QUARTERLY', '2026-11-20T12:00:00Z', '2026-10-01'],
  ['ANNUALLY', '2026-01-01T00:00:00Z', '2026-01-01'],
  ['ANNUALLY', '2026-12-31T23:59:59Z', '2026-01-01'],
];

describe('calendar periods of UTC (ap2 7.3)', () => {
  for (const [frequency, at, start] of PERIODS)
    it(`${frequency}: ${at} lies in the one of ${start}`, () => {
      const seconds = periodStart(frequency, Date.parse(at) / 1_000);
      assert.equal(seconds, Date.parse(`${start}T00:00:00Z`) / 1_000);
    });

  it('ON_DEMAND has none', () => assert.equal(periodStart('ON_DEMAND', 1_795_176_000), undefined));
});

const mint = createMint();
const verify = verifierFor(mint);
const { network = '', payer = '' } = purchaseWith().payment ?? {};
const ACCOUNT = { type: 'x402', id: `${network}:${payer}` };
const PISP = { legal_name: 'Pay Ltd', brand_name: 'Pay', domain_name: 'pay.example' };

/** Under the reference that all of them need, and these. */
function under(...constraints: readonly Constraint[]): () => string {
  return closedUnder({}, ...constraints);
}

function closedUnder(changes: Changes, ...constraints: readonly Constraint[]): () => string {
  const paymentConstraints = withReference(...constraints);
  return () =>
    mint.autonomous({ payment: true, paymentConstraints, hands: { closedPayment: withMandate(changes) } }).header;
}

function and(body: JsonObject): () => string {
  return under(plain(body));
}

function range(changes: JsonObject): () => string {
  return and({ type: 'payment.amount_range', currency: 'USDC', max: 10_000, ...changes });
}

function window(changes: JsonObject): () => string {
  return and({ type: 'payment.execution_date', ...changes });
}

function services(allowed: Json, pisp?: JsonObject): () => string {
  return closedUnder(pisp === undefined ? {} : { pisp }, plain({ type: 'payment.allowed_pisps', allowed }));
}

function payees(allowed: Json): () => string {
  return and({ type: 'payment.allowed_payees', allowed });
}

function again(changes: JsonObject): () => string {
  const body = { type: 'payment.agent_recurrence', frequency: 'ON_DEMAND', ...changes };
  return under(amountRange('USDC', 10_000), budget('USDC', 1), plain(body));
}

/** Nothing of what could be withheld is shown. */
function withheld(constraint: Constraint): () => string {
  const paymentConstraints = withReference(constraint);
  const openPayment = withDisclosureTexts((texts) => texts.slice(-1));
  return () => mint.autonomous({ payment: true, paymentConstraints, hands: { openPayment } }).header;
}

describe('the constraints of open payment mandates (ap2 2.2)', () => {
  rows(verify, 'payment', [
    ['no limit but the reference', under(), 'accepted'],
    ['exactly the most', range({}), 'accepted'],
    ['one unit above the most', range({ max: 9_999 }), 'constraint_violated'],
    ['exactly the least', range({ min: 10_000 }), 'accepted'],
    ['one unit below the least', range({ max: 20_000, min: 10_001 }), 'constraint_violated'],
    ['a range of another currency', range({ currency: 'USD' }), 'constraint_violated'],
    ['the payee', under(allowedPayees([MERCHANT])), 'accepted'],
    ['another payee of our name', payees([{ ...MERCHANT, id: 'other' }]), 'constraint_violated'],
    ['payees that are withheld', withheld(allowedPayees([MERCHANT])), 'constraint_violated'],
    ['no payee', payees([]), 'constraint_violated'],
    ['the account', under(allowedInstruments([ACCOUNT])), 'accepted'],
    [
      'the account in capitals',
      under(allowedInstruments([{ ...ACCOUNT, id: ACCOUNT.id.replace(payer, payer.toUpperCase()) }])),
      'accepted',
    ],
    ['the account as another type', under(allowedInstruments([{ ...ACCOUNT, type: 'card' }])), 'constraint_violated'],
    [
      'another account',
      under(allowedInstruments([{ ...ACCOUNT, id: `${network}:0x${'1'.repeat(40)}` }])),
      'constraint_violated',
    ],
    ['accounts that are withheld', withheld(allowedInstruments([ACCOUNT])), 'constraint_violated'],
    ['the service', services([PISP], PISP), 'accepted'],
    ['a service where none was named', services([PISP]), 'constraint_violated'],
    ['a service of another legal name', services([PISP], { ...PISP, legal_name: 'x' }), 'constraint_violated'],
    ['a service of another brand', services([PISP], { ...PISP, brand_name: 'x' }), 'constraint_violated'],
    ['a service of another domain', services([PISP], { ...PISP, domain_name: 'x' }), 'constraint_violated'],
    ['no service', services([], PISP), 'constraint_violated'],
    [
      'a window around now',
      window({ not_before: '2026-11-20T11:59:59Z', not_after: '2026-11-20T12:00:01Z' }),
      'accepted',
    ],
    ['a window that begins now', window({ not_before: '2026-11-20T12:00:00Z' }), 'accepted'],
    ['a window that begins in a second', window({ not_before: '2026-11-20T12:00:01Z' }), 'constraint_violated'],
    ['a window that ends now', window({ not_after: '2026-11-20T12:00:00.000Z' }), 'accepted'],
    ['a window that ended a second ago', window({ not_after: '2026-11-20T11:59:59Z' }), 'constraint_violated'],
    ['a window that ends now elsewhere', window({ not_after: '2026-11-20T13:00:00+01:00' }), 'accepted'],
    // As text it would be later than now.
    ['a window that ended elsewhere', window({ not_after: '2026-11-20T12:30:00+01:00' }), 'constraint_violated'],
    ['a window that ends with this day', window({ not_after: '2026-11-20' }), 'accepted'],
    ['a window that ended with yesterday', window({ not_after: '2026-11-19' }), 'constraint_violated'],
    ['a window without ends', window({}), 'accepted'],
    [
      'a date in the window, made too late',
      dated('2026-11-19T12:00:00Z', { not_after: '2026-11-19T13:00:00Z' }),
      'constraint_violated',
    ],
    ['a date before the window', dated('2026-11-19', { not_before: '2026-11-20' }), 'constraint_violated'],
    ['a date in the window, and so is now', dated('2026-11-20T11:00:00Z', { not_before: '2026-11-20' }), 'accepted'],
    ['a budget of exactly the price', under(budget('USDC', 0.01)), 'accepted'],
    ['a budget of one unit less', under(budget('USDC', 0.009999)), 'budget_exceeded'],
    ['a budget of another currency', under(budget('USD', 1)), 'constraint_violated'],
    ['a budget of an unknown currency', under(budget('EUR', 0.001)), 'constraint_violated'],
    ['a budget of nothing', under(budget('USDC', 0)), 'budget_exceeded'],
    ['a budget of too many digits', under(budget('USDC', 0.0100001)), 'claims_invalid'],
    ['a budget of the most units', under(budget('USDC', 9_007_199_254)), 'accepted'],
    ['a budget of more units than are exact', under(budget('USDC', 9_007_199_255)), 'claims_invalid'],
    ['two budgets of which one is too small', under(budget('USDC', 1), budget('USDC', 0.005)), 'budget_exceeded'],
    ['uses at will', again({}), 'accepted'],
    ['one use', again({ max_occurrences: 1 }), 'accepted'],
    ['no use', again({ max_occurrences: 0 }), 'claims_invalid'],
    ['an unknown frequency', again({ frequency: 'HOURLY' }), 'constraint_unresolved'],
    ['uses again without a range', under(budget('USDC', 1), recurrence('DAILY')), 'claims_invalid'],
    ['uses again without a budget', under(amountRange('USDC', 10_000), recurrence('DAILY')), 'claims_invalid'],
    ['an unknown limit', and({ type: 'payment.colour' }), 'constraint_unresolved'],
    ['a limit of checkouts', and({ type: 'checkout.allowed_merchants', allowed: [] }), 'constraint_unresolved'],
  ] satisfies readonly Row[]);

  it('hold for the sub-agent as they do for the agent', async () => {
    const wishes = { payment: true, delegated: true } as const;
    // Presets stand beside the constraints, so that the same reference serves both.
    const bad = withMandate({ payment_amount: { amount: 1, currency: 'USDC' } });
    for (const hands of [{ openPayment: bad }, { paymentSubAgent: bad }]) {
      const verdict = await verify(mint.autonomous({ ...wishes, hands }).header);
      assert.equal(verdict.kind === 'refused' && verdict.reason, 'preset_mismatch');
    }
    const both = withReference(plain({ type: 'payment.amount_range', currency: 'USDC', max: 1 }));
    const verdict = await verify(mint.autonomous({ ...wishes, paymentConstraints: both }).header);
    assert.equal(verdict.kind === 'refused' && verdict.reason, 'constraint_violated');
    assert.equal(verdict.kind === 'refused' && verdict.constraint, 'payment.amount_range');
  });
});

function dated(execution_date: string, limits: JsonObject): () => string {
  return closedUnder({ execution_date }, plain({ type: 'payment.execution_date', ...limits }));
}
