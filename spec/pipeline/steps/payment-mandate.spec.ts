import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readStoredMandate, storedMandate } from '../../../src/mandates/stored-mandate.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { failedForMandate, mandateOf, usedMandate } from '../../../src/pipeline/middleware/mandate-of-sale.ts';
import { ACCEPTED, EXPIRED, OFFERS, proven, scriptedDesk } from './mandate-desk.ts';

const OFFER = OFFERS.get('report') as Offer;
const accepted = { mandated: { kind: 'accepted', mandate: ACCEPTED } } as const;
const unneeded = { mandated: { kind: 'unneeded', refused: EXPIRED } } as const;
const callOf = (more: object): ProvenCall => proven(more).call() as ProvenCall;
const { desk } = scriptedDesk(ACCEPTED);

describe('what a mandate adds to an order', () => {
  it('its claim, to be reserved with the payment', () => {
    const { terms, refusal } = mandateOf(callOf(accepted));
    assert.deepEqual(readStoredMandate(terms.mandate ?? '')?.claim, ACCEPTED.claim);
    assert.equal(refusal, undefined);
  });

  it('nothing where none is required, and the journal as it is', () => {
    const call = callOf({});
    const { terms, refusal, journal } = mandateOf(call);
    assert.deepEqual([terms, refusal, journal === call.journal], [{}, undefined, true]);
  });

  it('unneeded: no claim, and a refusal, so that nothing new is settled; that of the proof comes first', () => {
    assert.deepEqual(mandateOf(callOf(unneeded)).terms, {});
    assert.equal(mandateOf(callOf(unneeded)).refusal, 'checkout_expired');
    assert.equal(mandateOf(callOf({ ...unneeded, refusal: 'invalid_scheme' })).refusal, 'invalid_scheme');
  });

  it('it is announced once, right before the first thing that happens to the payment, and not on a resume', () => {
    const { events, call } = proven(accepted);
    const { journal } = mandateOf(call() as ProvenCall);
    journal.record('payment.verified');
    journal.record('payment.settled');
    const types = ['authorization.verified', 'payment.verified', 'payment.settled'];
    assert.deepEqual(
      events().map(({ type }) => type),
      types,
    );
    const resumed = proven(accepted);
    mandateOf(resumed.call() as ProvenCall).journal.record('backend.called');
    assert.deepEqual(
      resumed.events().map(({ type }) => type),
      ['backend.called'],
    );
  });
});

describe('a sale that failed for its mandate', () => {
  const REFUSED = { state: 'refused', evidence: 'expired', reason: 'checkout_expired' } as PaymentRecord;
  const gone = (reason: string): SettlementResult => ({
    kind: 'refused',
    owed: SafeToRechallenge.discarded({ kind: 'gone' }, reason),
  });

  it('used up meanwhile: the error of the reason', () => {
    for (const [reason, code, status] of [
      ['replayed', 'AUTHORIZATION_REPLAYED', 409],
      ['budget_exceeded', 'AUTHORIZATION_INVALID', 403],
    ] as const) {
      const { call, events } = proven(accepted);
      const error = failedForMandate(call() as ProvenCall, { kind: 'mandate_used', reason }, OFFER, desk);
      assert.deepEqual([error?.code, error?.status, error?.details?.reason], [code, status, reason]);
      assert.equal(error?.details?.receipt, `rejected leaf ${reason}`);
      assert.deepEqual(
        events().map(({ type }) => type),
        ['authorization.rejected'],
      );
    }
  });

  it('the record is gone that would have answered: 403 and never 402, for nothing is wrong with the payment', () => {
    const error = failedForMandate(callOf(unneeded), gone('checkout_expired'), OFFER, desk);
    assert.deepEqual([error?.code, error?.details?.reason], ['AUTHORIZATION_INVALID', 'checkout_expired']);
  });

  it('refusals of the payment stay what they are', () => {
    assert.equal(failedForMandate(callOf(unneeded), gone('insufficient_funds'), OFFER, desk), undefined);
    assert.equal(failedForMandate(callOf(accepted), gone('checkout_expired'), OFFER, desk), undefined);
    assert.equal(failedForMandate(callOf({}), gone('insufficient_funds'), OFFER, undefined), undefined);
    const recorded: SettlementResult = { kind: 'refused', owed: SafeToRechallenge.refused(REFUSED, true) };
    assert.equal(failedForMandate(callOf(unneeded), recorded, OFFER, desk), undefined);
    const late = callOf({ ...unneeded, refusal: 'checkout_expired' });
    assert.equal(failedForMandate(late, gone('checkout_expired'), OFFER, desk), undefined);
  });
});

describe('the receipt of a settled call', () => {
  const record = { requestId: 'first', transaction: '0xabc', mandate: storedMandate(ACCEPTED) } as PaymentRecord;

  it('is for the mandate that the payment was admitted with, and names order and transaction', () => {
    for (const call of [accepted, unneeded])
      assert.equal(usedMandate(callOf(call), record, desk)?.receipt, 'accepted leaf first 0xabc');
  });

  it('is not given for another one, nor for none; the own receipt tells of the right one all the same', () => {
    const other = { mandated: { kind: 'accepted', mandate: { ...ACCEPTED, reference: 'other' } } };
    const none = { mandated: { kind: 'unneeded', refused: { ...EXPIRED, reference: undefined } } };
    const added = { ...EXPIRED, reference: { reference: 'leaf', referenceSdHash: 'leaf-with-one-more' } };
    const disclosed = { mandated: { kind: 'unneeded', refused: added } };
    for (const call of [other, none, disclosed]) {
      const used = usedMandate(callOf(call), record, desk);
      assert.deepEqual([used?.receipt, used?.summary.reference], [undefined, 'leaf']);
    }
  });

  it('is nothing for a payment without a mandate', () => {
    const { mandate: _, ...plain } = record;
    assert.equal(usedMandate(callOf(accepted), plain, desk), undefined);
    assert.equal(usedMandate(callOf({}), record, desk), undefined);
  });
});
