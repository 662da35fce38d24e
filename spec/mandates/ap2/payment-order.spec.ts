import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { amountRange, budget, type Constraint, plain, recurrence } from '../../../tools/mandate/maker/constraints.ts';
import { type Changes, withMandate } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { MERCHANT, profileWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { withReference } from '../../support/ap2/wishes.ts';
import { type Row, resultOf, rows } from './table.ts';

const mint = createMint();
const verify = verifierFor(mint);

/** A closed payment mandate with these members, under these constraints beside the reference. */
function made(closed: Changes, constraints: readonly Constraint[], open: Changes = {}): () => string {
  const paymentConstraints = withReference(...constraints);
  const hands = { closedPayment: withMandate(closed), openPayment: withMandate(open) };
  return () => mint.autonomous({ payment: true, paymentConstraints, hands }).header;
}

/** The same under an open mandate that refers to no checkout mandate. */
function unbound(closed: Changes): () => string {
  const hands = { closedPayment: withMandate(closed) };
  return () =>
    mint.autonomous({ payment: true, paymentConstraints: () => [amountRange('USDC', 10_000)], hands }).header;
}

const UNKNOWN = [plain({ type: 'payment.of_tomorrow' })];
const MALFORMED = [plain({ type: 'payment.amount_range', currency: 'USDC', max: 'x' })];
const WITHOUT_BUDGET = [amountRange('USDC', 10_000), recurrence('ON_DEMAND')];
const OTHER_CHECKOUT = { transaction_id: hashed('another') };
const OTHER_PAYEE = { payee: { ...MERCHANT, id: 'other' } };
const LATER = { execution_date: '2026-12-24' };
const PRESET = { payment_amount: { amount: 9_999, currency: 'USDC' } };

/** The purchase is compared before the limits, and of two faults the earlier one is named. */
describe('the order of step 14 (ap2 7.6)', () => {
  rows(verify, 'payment', [
    ['another checkout, under an unknown limit', made(OTHER_CHECKOUT, UNKNOWN), 'payment_binding_mismatch'],
    ['another payee, under an unknown limit', made(OTHER_PAYEE, UNKNOWN), 'payee_mismatch'],
    ['another payee, under a malformed limit', made(OTHER_PAYEE, MALFORMED), 'payee_mismatch'],
    ['another payee, to be repeated without a budget', made(OTHER_PAYEE, WITHOUT_BUDGET), 'payee_mismatch'],
    ['another payee, under one that refers to nothing', unbound(OTHER_PAYEE), 'claims_invalid'],
    ['another preset, under a malformed limit', made({}, MALFORMED, PRESET), 'preset_mismatch'],
    [
      'a later day than the window and than now',
      made(LATER, [plain({ type: 'payment.execution_date', not_after: '2026-11-30' })]),
      'constraint_violated',
    ],
    ['a later day than the one that was fixed', made(LATER, [], { execution_date: '2026-11-19' }), 'preset_mismatch'],
    ['a later day, under an unknown limit', made(LATER, UNKNOWN), 'constraint_unresolved'],
  ] satisfies readonly Row[]);

  it('asks for the nonce of the payment before it counts the budget', async () => {
    const profile = profileWith({ policy: { paymentMandate: 'optional', bindPaymentNonce: true } });
    const header = made({}, [budget('USDC', 0.009)])();
    assert.deepEqual(await resultOf(verify(header)), ['budget_exceeded', 'payment']);
    assert.deepEqual(await resultOf(verifierFor(mint, { profile })(header)), ['payment_binding_mismatch', 'payment']);
  });
});
