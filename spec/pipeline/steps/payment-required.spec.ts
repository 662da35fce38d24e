import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventDraft } from '../../../src/events/event.ts';
import { openJournal } from '../../../src/events/journal.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { Challenge } from '../../../src/payments/x402/wire/challenge.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import type { PreparedCall, ResponseWriter } from '../../../src/pipeline/call.ts';
import { refusalSentence, requirePayment } from '../../../src/pipeline/steps/payment-required.ts';

describe('what a buyer is told about a refusal', () => {
  it('the token, and what would be right', () => {
    assert.equal(
      refusalSentence('invalid_scheme'),
      'The payment proof was refused: invalid_scheme (scheme must be exact).',
    );
  });
  it('of a reason that we do not know, the token alone', () => {
    assert.equal(refusalSentence('sanctioned_payer'), 'The payment proof was refused: sanctioned_payer.');
    assert.equal(refusalSentence('constructor'), 'The payment proof was refused: constructor.');
  });
});

const challenge = (said: string): Challenge => ({
  body: said,
  header: '',
  document: '',
  envelope: said,
  refusal: undefined,
  message: '',
  asciiDocument: '',
});
const OFFER = {
  requirements: { network: 'eip155:1', maxTimeoutSeconds: 60 },
  amount: '0.01',
  currency: 'TUSD',
  issueToken: () => 'token',
  challenge: {
    fresh: () => challenge('fresh'),
    refused: (_facts: object, error: object) => challenge(JSON.stringify(error)),
  },
} as unknown as Offer;

/** A call as this door needs it, and what it did with it. */
function counter(proof: PreparedCall['proof']) {
  const events: EventDraft[] = [];
  const asked: { readonly body: string; readonly payment: PaymentResponse | undefined }[] = [];
  const responseWriter = {
    paymentRequired: ({ body }: Challenge, payment?: PaymentResponse) => void asked.push({ body, payment }),
  } as unknown as ResponseWriter;
  const journal = openJournal(
    { requestId: 'r', resourceId: 'report', adapter: 'http' },
    { push: (event) => void events.push(event), withdraw: () => [] },
  );
  const bought = { resource: { id: 'report' }, request: { method: 'GET' }, input: {} };
  const call = { requestId: 'r', proof, journal, responseWriter, ...bought } as unknown as PreparedCall;
  return { call, asked, types: () => events.map(({ type }) => type) };
}

const PROOF = { kind: 'header', value: 'proof' } as const;
const REFUSED = { state: 'refused', evidence: 'expired', reason: 'expired', transaction: '0xabc' } as PaymentRecord;

describe('the door of every 402', () => {
  it('a call without a proof needs no witness', () => {
    const { call, asked, types } = counter({ kind: 'none' });
    requirePayment(call, OFFER, undefined);
    assert.deepEqual(asked, [{ body: 'fresh', payment: undefined }]);
    assert.deepEqual(types(), ['payment.required']);
  });

  it('a call that brought a proof gets no challenge without a witness', () => {
    for (const proof of [PROOF, { kind: 'illegible' } as const]) {
      const { call, asked, types } = counter(proof);
      assert.throws(() => requirePayment(call, OFFER, undefined), /may still move money/);
      assert.deepEqual([asked, types()], [[], []]);
    }
  });

  it('nor for one that is forged, whoever brings it', () => {
    const forged = { ...SafeToRechallenge.refused(REFUSED, false) } as unknown as SafeToRechallenge;
    for (const proof of [PROOF, { kind: 'none' } as const]) {
      const { call, asked } = counter(proof);
      assert.throws(() => requirePayment(call, OFFER, forged), /may still move money/);
      assert.deepEqual(asked, []);
    }
  });

  it('a proof that was refused before anything was begun: payment.rejected, then payment.required', () => {
    const { call, asked, types } = counter(PROOF);
    requirePayment(call, OFFER, SafeToRechallenge.unreserved('invalid_payload'));
    assert.deepEqual(types(), ['payment.rejected', 'payment.required']);
    const { code, reason } = JSON.parse(asked[0]?.body ?? '{}') as { code: string; reason: string };
    assert.deepEqual([code, reason, asked[0]?.payment], ['PAYMENT_INVALID', 'invalid_payload', undefined]);
  });

  it('a settlement that was refused says so in PAYMENT-RESPONSE, and its event is not told twice', () => {
    for (const [recorded, events] of [
      [true, ['payment.required']],
      [false, ['payment.rejected', 'payment.required']],
    ] as const) {
      const { call, asked, types } = counter(PROOF);
      requirePayment(call, OFFER, SafeToRechallenge.refused(REFUSED, recorded));
      assert.deepEqual(types(), events);
      const { payment, body = '{}' } = asked[0] ?? {};
      assert.equal((JSON.parse(body) as { code: string }).code, 'PAYMENT_SETTLEMENT_FAILED');
      assert.deepEqual([payment?.success, payment?.errorReason, payment?.transaction], [false, 'expired', '0xabc']);
    }
  });
});
