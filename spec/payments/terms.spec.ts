import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hintDigest, keyDigest } from '../../src/payments/key.ts';
import { assertTerms } from '../../src/payments/ledger/invariants.ts';
import type { PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import { compileOffers } from '../../src/payments/offers.ts';
import { paymentReceiptId } from '../../src/payments/receipt-id.ts';
import { paymentTerms } from '../../src/payments/terms.ts';
import { RECEIPT_ID } from '../../src/receipts/receipt.ts';
import { freshAccount, genuineProof, PRICE_UNITS, termsFor } from './x402/signing.ts';

const x402 = termsFor();
const pricing = { type: 'fixed', amount: '0.01', currency: 'TUSD', units: PRICE_UNITS } as const;
const report = { id: 'report', name: 'Report', description: undefined, mimeType: 'application/json', pricing };
const merchant = { publicBaseUrl: 'https://shop.example' };
const offer = compileOffers({ merchant, resources: [report], x402 }).get('report') ?? assert.fail();
const payment = await genuineProof(freshAccount(), x402);

function termsOf(names: { readonly idempotencyKey?: string; readonly retryHint?: string }): PaymentTerms {
  const request = { method: 'GET', path: '/report', headers: {}, body: undefined } as const;
  const call = { requestId: 'req_1', channel: 'a2a', resource: report, request, input: {}, payment } as const;
  const terms = paymentTerms({ ...call, idempotencyKey: undefined, retryHint: undefined, ...names }, offer);
  // What no ledger would take is no terms.
  return assertTerms(terms);
}

describe('the receipt of a purchase', () => {
  it('has the id that follows from the authorization, whoever computes it', () => {
    const { authorization } = payment.payload.payload;
    const expected = paymentReceiptId(payment.payId, Number(authorization.validBefore), x402.maxTimeoutSeconds);
    assert.equal(termsOf({}).receiptId, expected);
    assert.equal(termsOf({ idempotencyKey: 'another call' }).receiptId, expected);
    assert.match(expected, RECEIPT_ID);
  });

  it('sorts by the time of the authorization, whatever that says', () => {
    const ids = [0, 1, 1_800_000_000, 1_800_000_001, 2 ** 50].map((validBefore) =>
      paymentReceiptId(payment.payId, validBefore, 120),
    );
    assert.deepEqual(ids.toSorted(), ids);
    for (const id of ids) assert.match(id, RECEIPT_ID);
  });
});

describe('how a purchase is recognised when it is asked for again', () => {
  const { payId } = payment;

  it('by the key that the caller brought', () => {
    const { keyDigest: key, hintDigest: hint } = termsOf({ idempotencyKey: 'name' });
    assert.deepEqual([key, hint], [keyDigest(payId, 'name'), undefined]);
  });

  it('without a key by what the protocol calls the message', () => {
    const { keyDigest: key, hintDigest: hint } = termsOf({ retryHint: 'name' });
    assert.deepEqual([key, hint], [undefined, hintDigest(payId, 'name')]);
  });

  it('a key rules alone', () => {
    const both = termsOf({ idempotencyKey: 'name', retryHint: 'a2a:1' });
    assert.deepEqual([both.keyDigest, both.hintDigest], [keyDigest(payId, 'name'), undefined]);
  });

  it('by nothing when the caller brought neither', () => {
    const none = termsOf({});
    assert.ok(!('keyDigest' in none) && !('hintDigest' in none));
  });

  it('a key and a hint of the same letters are two, of two payments four', () => {
    const other = '0'.repeat(64);
    const digests = [payId, other].flatMap((id) => [keyDigest(id, 'name'), hintDigest(id, 'name')]);
    assert.equal(new Set(digests).size, 4);
    for (const digest of digests) assert.match(digest, /^[0-9a-f]{64}$/);
  });
});
