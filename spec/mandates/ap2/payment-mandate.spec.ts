import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keccak256 } from '../../../src/crypto/hash.ts';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import {
  checkInstrument,
  type Frequency,
  periodStart,
  readMoment,
  sameInstrument,
} from '../../../src/mandates/ap2/payment-mandate.ts';
import type { PurchasePayment } from '../../../src/mandates/ap2/purchase.ts';
import {
  allowedInstruments,
  allowedPayees,
  amountRange,
  budget,
  type Constraint,
  plain,
  recurrence,
  reference,
} from '../../../tools/mandate/maker/constraints.ts';
import { type Changes, type Hand, withClaims, withDisclosureTexts, withMandate } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { freePurchase, MERCHANT, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { withReference } from '../../support/ap2/wishes.ts';
import { type Row, refusalOf, resultOf, rows } from './cases.ts';

const mint = createMint();
const verify = verifierFor(mint);
const PAYMENT = purchaseWith().payment as PurchasePayment;
const PAYER = PAYMENT.payer ?? '';
const INSTRUMENT = { type: 'x402', id: `${PAYMENT.network}:${PAYER}` };
const AMOUNT = { amount: 10_000, currency: 'USDC' };

function closedBy(closedPayment: Hand): () => string {
  return () => mint.autonomous({ payment: true, hands: { closedPayment } }).header;
}

/** Other members of the closed payment mandate. */
function closed(changes: Changes): () => string {
  return closedBy(withMandate(changes));
}

/** Other members of the open one. */
function opened(changes: Changes): () => string {
  return () => mint.autonomous({ payment: true, hands: { openPayment: withMandate(changes) } }).header;
}

function instrument(changes: Changes): () => string {
  return closed({ payment_instrument: { ...INSTRUMENT, ...changes } as typeof INSTRUMENT });
}

function paid(changes: Partial<PurchasePayment>) {
  return { purchase: purchaseWith({ payment: { ...PAYMENT, ...changes } }) };
}

/** Under an open mandate that refers to this. */
function referring(to: (openCheckoutHash: string) => string): () => string {
  const paymentConstraints = (hash: string) => [amountRange('USDC', 10_000), reference(to(hash))];
  return () => mint.autonomous({ payment: true, paymentConstraints }).header;
}

describe('the payment mandate (ap2 7.6, step 14)', () => {
  rows(verify, 'payment', [
    ['for this checkout and this payer', closed({}), 'accepted'],
    ['signed by the provider for this very purchase', () => mint.direct({ payment: true }).header, 'accepted'],
    ['with another nonce', closedBy(withClaims({ nonce: 'x'.repeat(22) })), 'nonce_mismatch'],
    ['for another checkout', closed({ transaction_id: hashed('another') }), 'payment_binding_mismatch'],
    ['under one for another checkout mandate', referring(() => hashed('another')), 'payment_binding_mismatch'],
    [
      'under one for this and another',
      () =>
        mint.autonomous({
          payment: true,
          paymentConstraints: (hash) => [reference(hash), reference(hashed('another'))],
        }).header,
      'payment_binding_mismatch',
    ],
    [
      'under one that refers to nothing',
      () =>
        mint.autonomous({
          payment: true,
          paymentConstraints: () => [amountRange('USDC', 10_000)],
        }).header,
      'claims_invalid',
    ],
    ['to another merchant', closed({ payee: { ...MERCHANT, id: 'other' } }), 'payee_mismatch'],
    ['to our id under another name', closed({ payee: { id: MERCHANT.id, name: 'Other' } }), 'accepted'],
    ['in another currency', closed({ payment_amount: { ...AMOUNT, currency: 'USD' } }), 'currency_mismatch'],
    ['of one unit less', closed({ payment_amount: { ...AMOUNT, amount: 9_999 } }), 'amount_mismatch'],
    ['of one unit more', closed({ payment_amount: { ...AMOUNT, amount: 10_001 } }), 'amount_mismatch'],
    ['with a card', instrument({ type: 'card' }), 'payment_method_mismatch'],
    ['from an account on another network', instrument({ id: `eip155:1:${PAYER}` }), 'payment_method_mismatch'],
    ['from an account that names no network', instrument({ id: PAYER }), 'payment_method_mismatch'],
    ['from another account', instrument({ id: `${PAYMENT.network}:0x${'1'.repeat(40)}` }), 'payer_mismatch'],
    ['from an account and more', instrument({ id: `${INSTRUMENT.id}0` }), 'payer_mismatch'],
    [
      'from the account in capitals',
      instrument({ id: `${PAYMENT.network}:${PAYER.toUpperCase().replace('X', 'x')}` }),
      'accepted',
    ],
    ['paid by another account', closed({}), 'payer_mismatch', paid({ payer: `0x${'2'.repeat(40)}` })],
    ['paid by an unknown address', closed({}), 'payer_mismatch', paid({ payer: undefined })],
    ['for a call that costs nothing', forNothing, 'payment_method_mismatch', { purchase: freePurchase() }],
    ['with data about risk', closed({ risk_data: { score: 1 } }), 'accepted'],
    ['to be made today', closed({ execution_date: '2026-11-20' }), 'accepted'],
    ['to be made within the skew', closed({ execution_date: '2026-11-20T12:01:00Z' }), 'accepted'],
    ['to be made after it', closed({ execution_date: '2026-11-20T12:01:01Z' }), 'not_yet_valid'],
    ['to be made tomorrow', closed({ execution_date: '2026-11-21' }), 'not_yet_valid'],
    ['under the amount that was fixed', opened({ payment_amount: AMOUNT }), 'accepted'],
    ['under another amount', opened({ payment_amount: { ...AMOUNT, amount: 9_999 } }), 'preset_mismatch'],
    ['under another payee', opened({ payee: { ...MERCHANT, name: 'Other' } }), 'preset_mismatch'],
    [
      'under the instrument that was fixed',
      opened({ payment_instrument: { id: INSTRUMENT.id, type: 'x402' } }),
      'accepted',
    ],
    ['under another instrument', opened({ payment_instrument: { ...INSTRUMENT, type: 'card' } }), 'preset_mismatch'],
    ['under another checkout', opened({ transaction_id: hashed('another') }), 'preset_mismatch'],
    [
      'under a service that it lacks',
      opened({ pisp: { legal_name: 'P', brand_name: 'P', domain_name: 'P' } }),
      'preset_mismatch',
    ],
    ['under a date that it lacks', opened({ execution_date: '2026-11-20' }), 'preset_mismatch'],
    ['under data about risk that it lacks', opened({ risk_data: {} }), 'preset_mismatch'],
  ] satisfies readonly Row[]);

  it('may be demanded', async () => {
    const profile = profileWith({ policy: { paymentMandate: 'required', bindPaymentNonce: false } });
    const demanding = verifierFor(mint, { profile });
    assert.deepEqual(await resultOf(demanding(mint.autonomous().header)), ['payment_mandate_required', 'payment']);
    assert.deepEqual(await resultOf(demanding(mint.autonomous({ payment: true }).header)), ['accepted']);
    const purchase = freePurchase();
    assert.deepEqual(await resultOf(demanding(mint.autonomous({ purchase }).header, { purchase })), ['accepted']);
  });

  it('needs a checkout mandate that was given together with it', async () => {
    const made = mint.autonomous({ payment: true });
    const alone = mint.direct({
      checkoutJwt: made.checkoutJwt,
      envelope: (envelope) => ({ ...envelope, payment_mandate: made.paymentMandate ?? '' }),
    });
    assert.deepEqual(await resultOf(verify(alone.header)), ['payment_binding_mismatch', 'payment']);
  });

  it('is of its own family', async () => {
    const { header } = mint.autonomous({
      payment: true,
      envelope: (envelope) => ({ ...envelope, payment_mandate: envelope['payload'] ?? '' }),
    });
    assert.deepEqual(await resultOf(verify(header)), ['wrong_mandate_type', 'payment']);
  });

  it('is what the nonce of the payment is made of, where the merchant demands that', async () => {
    const profile = profileWith({ policy: { paymentMandate: 'optional', bindPaymentNonce: true } });
    const binding = verifierFor(mint, { profile });
    const made = mint.autonomous({ payment: true });
    const bound = Buffer.from(keccak256(Buffer.from(made.paymentMandate ?? ''))).toString('hex');
    const withNonce = (nonce: string | undefined) => resultOf(binding(made.header, paid({ nonce })));
    assert.deepEqual(await withNonce(`0x${bound}`), ['accepted']);
    assert.deepEqual(await withNonce(`0x${bound.toUpperCase()}`), ['accepted']);
    assert.deepEqual(await withNonce(PAYMENT.nonce), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await withNonce(bound), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await withNonce(undefined), ['payment_binding_mismatch', 'payment']);
    assert.deepEqual(await resultOf(verify(made.header, paid({ nonce: undefined }))), ['accepted']);
  });

  it('is checked after the checkout mandate, whose faults come first', async () => {
    const { header } = mint.autonomous({
      payment: true,
      constraints: [],
      hands: { closedPayment: withMandate({ payee: undefined }) },
    });
    assert.deepEqual(await resultOf(verify(header)), ['claims_invalid', 'checkout']);
  });
});

/** A payment mandate beside a checkout that costs nothing. */
function forNothing(): string {
  const checkoutJwt = mint.checkout({ purchase: freePurchase() }).jwt;
  return mint.autonomous({
    checkoutJwt,
    payment: true,
    hands: { closedPayment: withMandate({ payment_amount: { amount: 0, currency: 'USDC' } }) },
  }).header;
}

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

const at = (text: string) => Date.parse(text);

describe('execution dates (ISO 8601)', () => {
  it('are whole days of UTC without a time', () => {
    assert.deepEqual(readMoment('2028-02-29'), {
      first: at('2028-02-29T00:00Z'),
      last: at('2028-02-29T23:59:59.999Z'),
    });
  });

  for (const text of [
    '2026-11-20T12:00Z',
    '2026-11-20T12:00:00Z',
    '2026-11-20T12:00:00.123Z',
    '2026-11-20T23:30:00-05:00',
  ])
    it(`are moments with one: ${text}`, () => assert.deepEqual(readMoment(text), { first: at(text), last: at(text) }));

  for (const text of [
    ...['', 'now', '2026', '2026-11', '20261120', '2026-11-20T12:00:00', '2026-11-20 12:00:00Z', '2026-11-20T12Z'],
    ...['2026-02-30', '2026-02-30T12:00:00Z', '2027-02-29', '2026-13-01', '2026-11-20T25:00:00Z', '1795176000'],
    ...['Nov 20, 2026', '2026-11-20T12:00:00+0100', '2026-11-20Z', ' 2026-11-20'],
  ])
    it(`are nothing else: ${JSON.stringify(text)}`, () =>
      assert.equal(
        refusalOf(() => readMoment(text)),
        'claims_invalid',
      ));
});

const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

describe('payment instruments', () => {
  for (const [what, one, other, same] of [
    ['equal', { type: 'card', id: 'Card-1' }, { type: 'card', id: 'Card-1' }, true],
    ['of another type', { type: 'x402', id: 'eip155:1:0xab' }, { type: 'card', id: 'eip155:1:0xab' }, false],
    [
      'accounts of EIP-155 in other letters',
      { type: 'x402', id: 'eip155:1:0xab' },
      { type: 'x402', id: 'eip155:1:0xAB' },
      true,
    ],
    ['cards in other letters', { type: 'card', id: 'Card-1' }, { type: 'card', id: 'card-1' }, false],
    [
      'cards that look like accounts',
      { type: 'card', id: 'eip155:1:0xab' },
      { type: 'card', id: 'eip155:1:0xAB' },
      false,
    ],
    // Elsewhere letters in other cases are other addresses.
    [
      'accounts elsewhere in other letters',
      { type: 'x402', id: `${SOLANA}:aB` },
      { type: 'x402', id: `${SOLANA}:AB` },
      false,
    ],
  ] as const)
    it(`${same ? 'are' : 'are not'} the same: ${what}`, () => assert.equal(sameInstrument(one, other), same));

  it('outside of EIP-155 name the payer letter by letter', () => {
    const { payment } = purchaseWith();
    assert.ok(payment);
    const paid = { ...payment, network: SOLANA, payer: 'aB' };
    const pays = (id: string) => refusalOf(() => checkInstrument({ type: 'x402', id }, paid));
    assert.equal(pays(`${SOLANA}:aB`), 'none');
    assert.equal(pays(`${SOLANA}:AB`), 'payer_mismatch');
  });
});
