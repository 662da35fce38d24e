import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readStoredMandate, storedMandate } from '../../../src/mandates/stored-mandate.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { paymentMandate } from '../../../src/pipeline/steps/payment-mandate.ts';
import { ACCEPTED, EXPIRED, proven, scriptedMandates } from '../calls.ts';

const { mandates } = scriptedMandates(ACCEPTED);
const accepted = { mandated: { kind: 'accepted', mandate: ACCEPTED } } as const;
const unneeded = { mandated: { kind: 'unneeded', refused: EXPIRED } } as const;

const mandateOf = (call: ReturnType<typeof proven>) => paymentMandate(call.call<ProvenCall>(), mandates);

describe('what a mandate adds to a settlement request', () => {
  it('its claim, to be reserved with the payment', () => {
    const { terms, refusal } = mandateOf(proven(accepted));
    assert.deepEqual(readStoredMandate(terms.mandate ?? '')?.claim, ACCEPTED.claim);
    assert.equal(refusal, undefined);
  });

  it('nothing where none is required, and the journal as it is', () => {
    const call = proven();
    const { terms, refusal, journal } = mandateOf(call);
    assert.deepEqual([terms, refusal, journal], [{}, undefined, call.call<ProvenCall>().journal]);
  });

  it('unneeded: no claim, and a refusal of anything new; that of the proof comes first', () => {
    const { terms, refusal } = mandateOf(proven(unneeded));
    assert.deepEqual([terms, refusal], [{}, 'checkout_expired']);
    assert.equal(mandateOf(proven({ ...unneeded, refusal: 'invalid_scheme' })).refusal, 'invalid_scheme');
  });

  it('one event, right before the first of the payment, and none on a resume', () => {
    const [paid, resumed] = [proven(accepted), proven(accepted)];
    const { journal } = mandateOf(paid);
    journal.record('payment.verified');
    journal.record('payment.settled');
    assert.deepEqual(paid.types(), ['authorization.verified', 'payment.verified', 'payment.settled']);
    mandateOf(resumed).journal.record('backend.called');
    assert.deepEqual(resumed.types(), ['backend.called']);
  });
});

describe('a settlement that failed for its mandate', () => {
  const worthless = { state: 'refused', evidence: 'expired', reason: 'checkout_expired' } as PaymentRecord;
  const gone = (reason: string): SettlementResult => ({
    kind: 'refused',
    owed: SafeToRechallenge.discarded({ kind: 'gone' }, reason),
  });

  for (const [reason, code, status] of [
    ['replayed', 'AUTHORIZATION_REPLAYED', 409],
    ['budget_exceeded', 'AUTHORIZATION_INVALID', 403],
  ] as const)
    it(`${reason} meanwhile: the error of the reason`, () => {
      const call = proven(accepted);
      const error = mandateOf(call).failureOf({ kind: 'mandate_used', reason });
      assert.deepEqual([error?.code, error?.status, error?.details?.reason], [code, status, reason]);
      assert.equal(error?.details?.receipt, `rejected leaf ${reason}`);
      assert.deepEqual(call.types(), ['authorization.rejected']);
    });

  it('without the record that would have answered: 403 and not 402, for the payment is right', () => {
    const error = mandateOf(proven(unneeded)).failureOf(gone('checkout_expired'));
    assert.deepEqual([error?.code, error?.details?.reason], ['AUTHORIZATION_INVALID', 'checkout_expired']);
  });

  const PAYMENT: readonly (readonly [string, object, SettlementResult])[] = [
    ['of another reason', unneeded, gone('insufficient_funds')],
    ['under a good mandate', accepted, gone('checkout_expired')],
    ['without any mandate', {}, gone('insufficient_funds')],
    ['by the chain', unneeded, { kind: 'refused', owed: SafeToRechallenge.refused(worthless, true) }],
    ['by the local checks', { ...unneeded, refusal: 'checkout_expired' }, gone('checkout_expired')],
  ];
  for (const [title, call, result] of PAYMENT)
    it(`is not one whose payment was refused ${title}`, () =>
      assert.equal(mandateOf(proven(call)).failureOf(result), undefined));
});

describe('the receipt of a settled call', () => {
  const record = { requestId: 'first', transaction: '0xabc', mandate: storedMandate(ACCEPTED) } as PaymentRecord;

  it('is for the mandate that the payment was admitted with, and names request and transaction', () => {
    for (const call of [accepted, unneeded])
      assert.equal(mandateOf(proven(call)).usedFor(record)?.receipt, 'accepted leaf first 0xabc');
  });

  const withReference = (reference: object | undefined) => ({
    mandated: { kind: 'unneeded', refused: { ...EXPIRED, reference } },
  });
  for (const [title, call] of [
    ['another mandate', { mandated: { kind: 'accepted', mandate: { ...ACCEPTED, reference: 'other' } } }],
    ['none that can be read', withReference(undefined)],
    ['other disclosures', withReference({ reference: 'leaf', referenceSdHash: 'leaf-with-one-more' })],
  ] as const)
    it(`is not given for ${title}; the gateway's own receipt names the right one`, () => {
      const used = mandateOf(proven(call)).usedFor(record);
      assert.deepEqual([used?.receipt, used?.summary.reference], [undefined, 'leaf']);
    });

  it('is nothing for a payment without a mandate, nor where none is required', () => {
    const { mandate: _, ...plain } = record;
    assert.equal(mandateOf(proven(accepted)).usedFor(plain), undefined);
    assert.equal(mandateOf(proven()).usedFor(record), undefined);
  });
});
