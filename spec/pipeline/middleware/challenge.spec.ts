import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Request } from 'express';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import type { FundedCall, PreparedCall, ProvenCall } from '../../../src/pipeline/call.ts';
import {
  challenge,
  createSelling,
  refusalSentence,
  requirePayment,
} from '../../../src/pipeline/middleware/challenge.ts';
import { ACCEPTED, callAt, OFFERS, passed, RESOURCE, SELLING, scriptedMandates } from '../calls.ts';

const { mandates, asked } = scriptedMandates(ACCEPTED);

/** How a call leaves the middleware, and what was answered. */
async function challenged(more: object) {
  const call = callAt('prepared', more);
  const { went, error } = await passed(challenge(SELLING, mandates), call.res);
  return { went, error, call: call.call(), written: call.written, types: call.types() };
}

describe('the challenge of a call', () => {
  it('a free call is funded without it, whatever it brought', async () => {
    const resource = { ...RESOURCE, pricing: { type: 'free' } };
    const { went, call } = await challenged({ resource, proof: { kind: 'conflicting' } });
    assert.deepEqual([went, call.stage, (call as FundedCall).funding], [true, 'funded', { kind: 'free' }]);
  });

  it('a paid call without a proof gets the 402, and its mandate is not checked', async () => {
    const { went, written, types } = await challenged({ proof: { kind: 'none' } });
    assert.deepEqual([went, written, types], [false, [['402', 'fresh', undefined]], ['payment.required']]);
    assert.deepEqual(asked, []);
  });

  it('a call without an input gets a 402 that is for any, without a checkout', async () => {
    const resource = { ...RESOURCE, authorization: ['ap2'] };
    const call = callAt('resolved', { resource, proof: { kind: 'none' } });
    const { went } = await passed(challenge(SELLING, mandates), call.res);
    assert.deepEqual([went, call.written, call.types()], [false, [['402', 'fresh', undefined]], ['payment.required']]);
  });

  for (const kind of ['header', 'illegible'] as const)
    it(`a proof that is ${kind} is left to the verification`, async () => {
      const { went, written, call } = await challenged({ proof: { kind, value: 'proof' } });
      assert.deepEqual([went, written, call.stage], [true, [], 'prepared']);
    });

  it('two different proofs are an error of the input', async () => {
    const { went, error, written } = await challenged({ proof: { kind: 'conflicting' } });
    assert.deepEqual([went, error?.code, error?.details?.reason], [false, 'INPUT_INVALID', 'payment_proofs_differ']);
    assert.deepEqual(written, []);
  });

  it('a collecting call passes without an offer', async () => {
    const resource = { ...RESOURCE, id: 'removed' };
    const { went, call } = await challenged({ resource, collecting: { agreed: {} } });
    assert.deepEqual([went, call.stage], [true, 'prepared']);
  });
});

describe('the sentence about a refusal', () => {
  it('has the reason, and what would be right', () => {
    assert.equal(
      refusalSentence('invalid_scheme'),
      'The payment proof was refused: invalid_scheme (scheme must be exact).',
    );
  });
  it('has an unknown reason alone', () => {
    assert.equal(refusalSentence('sanctioned_payer'), 'The payment proof was refused: sanctioned_payer.');
    assert.equal(refusalSentence('constructor'), 'The payment proof was refused: constructor.');
  });
});

describe('what is sold to whom', () => {
  const [plain, upfront] = [{ amount: '1' }, { amount: '1' }] as unknown as [Offer, Offer];
  const after = { amount: '1', leastSeconds: 80, upfront } as unknown as Offer;
  const offers = new Map([
    ['plain', plain],
    ['after', after],
  ]);
  const req = {} as Request;
  const CALL = { resource: { id: 'after' } } as ProvenCall;

  it('a resource that is settled after its call is sold so while it may be worked unpaid for its caller', () => {
    const asked: unknown[] = [];
    const selling = (worksUnpaid: boolean) =>
      createSelling(offers, {
        worksUnpaid(...call) {
          asked.push(call);
          return worksUnpaid;
        },
      });
    assert.equal(selling(true).offerTo(req, 'after'), after);
    assert.equal(selling(false).offerTo(req, 'after'), upfront);
    assert.deepEqual(asked, [
      [req, 'after'],
      [req, 'after'],
    ]);
    assert.equal(createSelling(offers).offerTo(req, 'after'), after);
  });

  it('an answer that waits is offered as it was, whatever may be worked', () => {
    const selling = createSelling(offers, { worksUnpaid: () => false });
    assert.equal(selling.offerTo(req, 'after', after, { answerOf: 'p' }), after);
    assert.equal(selling.offerTo(req, 'after', after, { answerOf: undefined }), upfront);
  });

  it('every other one is not asked about', () => {
    const selling = createSelling(offers, { worksUnpaid: () => assert.fail('asked') });
    assert.equal(selling.offerTo(req, 'plain'), plain);
  });

  it('a proof may accept all of it, whatever is offered now', () => {
    assert.equal(createSelling(offers, { worksUnpaid: () => false }).offerFor(CALL, req), after);
  });

  it('a resource without an offer is a bug', () => {
    assert.throws(
      () => createSelling(offers).offerFor({ ...CALL, resource: { id: 'none' } } as ProvenCall, req),
      /no offer for none/,
    );
    assert.throws(() => createSelling(offers).offerTo(req, 'none'), /no offer for none/);
  });
});

const OFFER = OFFERS.get('report') as Offer;
const prepared = (proof: PreparedCall['proof']) => callAt('prepared', { proof });
const PROOF = { kind: 'header', value: 'proof' } as const;
const REFUSED = { state: 'refused', evidence: 'expired', reason: 'expired', transaction: '0xabc' } as PaymentRecord;

describe('every 402', () => {
  it('of a call without a proof needs no witness', () => {
    const { call, written, types } = prepared({ kind: 'none' });
    requirePayment(call<PreparedCall>(), OFFER, undefined);
    assert.deepEqual([written, types()], [[['402', 'fresh', undefined]], ['payment.required']]);
  });

  for (const proof of [PROOF, { kind: 'illegible' } as const, { kind: 'none' } as const]) {
    const forged = { ...SafeToRechallenge.refused(REFUSED, false) } as unknown as SafeToRechallenge;
    for (const owed of proof.kind === 'none' ? [forged] : [forged, undefined])
      it(`of a call with a proof that is ${proof.kind} is not made from a witness that is ${owed && 'forged'}`, () => {
        const { call, written, types } = prepared(proof);
        assert.throws(() => requirePayment(call<PreparedCall>(), OFFER, owed), /may still move money/);
        assert.deepEqual([written, types()], [[], []]);
      });
  }

  it('for a proof that was refused before a settlement began: payment.rejected, then payment.required', () => {
    const { call, written, types } = prepared(PROOF);
    requirePayment(
      call<PreparedCall>(),
      OFFER,
      SafeToRechallenge.unreserved({ kind: 'none' }, { reason: 'invalid_payload' }),
    );
    assert.deepEqual(types(), ['payment.rejected', 'payment.required']);
    const [, body, payment] = written[0] as [string, string, undefined];
    const { code, reason } = JSON.parse(body) as { code: string; reason: string };
    assert.deepEqual([code, reason, payment], ['PAYMENT_INVALID', 'invalid_payload', undefined]);
  });

  for (const [recorded, events] of [
    [true, ['payment.required']],
    [false, ['payment.rejected', 'payment.required']],
  ] as const)
    it(`for a refused settlement that is ${recorded ? '' : 'not '}recorded has PAYMENT-RESPONSE, and one rejection`, () => {
      const { call, written, types } = prepared(PROOF);
      requirePayment(call<PreparedCall>(), OFFER, SafeToRechallenge.refused(REFUSED, recorded));
      assert.deepEqual(types(), events);
      const [, body, payment] = written[0] as [string, string, PaymentResponse];
      assert.equal((JSON.parse(body) as { code: string }).code, 'PAYMENT_SETTLEMENT_FAILED');
      assert.deepEqual([payment.success, payment.errorReason, payment.transaction], [false, 'expired', '0xabc']);
    });

  it('names an answer that waits in its token, to its buyer alone', () => {
    const waiting = { ...REFUSED, payId: 'the payment', answered: 200 };
    const named: unknown[] = [];
    const issueToken: Offer['issueToken'] = (_bind, answerOf) => {
      named.push(answerOf);
      return 'token';
    };
    const offer = Object.assign(Object.create(OFFER), { issueToken }) as Offer;
    const gone = { kind: 'gone' } as const;
    for (const owed of [
      SafeToRechallenge.refused(waiting, true, true),
      SafeToRechallenge.refused(waiting, true, false),
      SafeToRechallenge.refused(REFUSED, true, true),
      SafeToRechallenge.discarded(gone, 'insufficient_funds', 'the payment'),
      SafeToRechallenge.discarded(gone, 'insufficient_funds'),
      SafeToRechallenge.unreserved({ kind: 'none' }, { reason: 'invalid_payload', answerOf: 'the payment' }),
      SafeToRechallenge.unreserved({ kind: 'none' }, { reason: 'invalid_payload' }),
    ])
      requirePayment(prepared(PROOF).call<PreparedCall>(), offer, owed);
    assert.deepEqual(named, ['the payment', undefined, undefined, 'the payment', undefined, 'the payment', undefined]);
  });
});
