import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readStoredMandate, storedMandate } from '../../../src/mandates/stored-mandate.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { paymentMandate } from '../../../src/pipeline/middleware/authorize.ts';
import { ACCEPTED, EXPIRED, proven, scriptedMandates } from '../calls.ts';

const { mandates } = scriptedMandates(ACCEPTED);
const accepted = { mandated: ACCEPTED } as const;
const refused = { mandated: EXPIRED } as const;

const mandateOf = (call: ReturnType<typeof proven>) => paymentMandate(call.call<ProvenCall>(), mandates);

describe('what a mandate adds to a settlement request', () => {
  it('its claim, to be reserved with the payment', () => {
    const { terms } = mandateOf(proven(accepted));
    assert.deepEqual(readStoredMandate(terms.mandate ?? '')?.claim, ACCEPTED.claim);
  });

  it('nothing where none is required, nor of a refused one, and the journal as it is', () => {
    for (const call of [proven(), proven(refused)]) {
      const { terms, journal } = mandateOf(call);
      assert.deepEqual([terms, journal], [{}, call.call<ProvenCall>().journal]);
    }
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

  it('is not one whose payment was refused', () => {
    const owed = SafeToRechallenge.discarded({ kind: 'gone' }, 'insufficient_funds');
    for (const call of [accepted, {}])
      assert.equal(mandateOf(proven(call)).failureOf({ kind: 'refused', owed }), undefined);
  });
});

describe('the receipt of a settled call', () => {
  const record = { requestId: 'first', transaction: '0xabc', mandate: storedMandate(ACCEPTED) } as PaymentRecord;

  it('is for the mandate that the payment was admitted with, and names request and transaction', () => {
    for (const call of [accepted, refused])
      assert.equal(mandateOf(proven(call)).usedFor(record)?.receipt, 'accepted leaf first 0xabc');
  });

  const withReference = (reference: object | undefined) => ({
    mandated: { ...EXPIRED, reference },
  });
  for (const [title, call] of [
    ['another mandate', { mandated: { ...ACCEPTED, reference: 'other' } }],
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
