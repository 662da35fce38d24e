import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  type HeldConnection,
} from '../../../src/backend/backend-exchange.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { backendIdempotencyKey } from '../../../src/payments/settlement/terms.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { AnsweredCall, FundedCall, ProvenCall } from '../../../src/pipeline/call.ts';
import type { Collector } from '../../../src/pipeline/collecting.ts';
import type { Selling } from '../../../src/pipeline/middleware/challenge.ts';
import { asAnswer } from '../../../src/pipeline/middleware/deliver.ts';
import { settle } from '../../../src/pipeline/middleware/settle.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { ACCEPTED, free, OFFERS, PAY_ID, passed, proven, SELLING, scriptedMandates } from '../calls.ts';

const record = { payId: 'p', state: 'settled', settledAt: 1, changedAt: 1, receiptId: 'receipt' } as PaymentRecord;
const lease = { drop: () => undefined };
const kept = { status: 200, headers: {}, body: Buffer.from('{}') };
const paid = { kind: 'paid', record, lease, kept: undefined, held: undefined } as const;
const refusedBefore = {
  kind: 'refused',
  owed: SafeToRechallenge.discarded({ kind: 'gone' }, 'insufficient_funds'),
} as const;

/** How a call leaves the middleware after a result of its settlement. */
async function settled(
  result: SettlementResult | Error,
  call = proven(),
  selling: Selling = SELLING,
  asBought: Collector['asBought'] = async () => undefined,
) {
  const requests: SettlementRequest[] = [];
  const settler = {
    settle: async (request: SettlementRequest) => {
      requests.push(request);
      if (result instanceof Error) throw result;
      return requests.length > 1 ? paid : result;
    },
  };
  const gate = {
    ...{ accepting: () => true, reserveBackend: async () => undefined, networkOf: () => 'network' },
    ...{ noteProof: () => undefined, quoteBought: () => undefined },
  };
  const middleware = settle(selling, settler, gate, { asBought }, scriptedMandates(ACCEPTED).mandates);
  const { went, error } = await passed(middleware, call.res);
  return { went, error, request: requests[0], requests, call: call.call(), written: call.written };
}

describe('the settlement of a call', () => {
  it('paid: funded, with the record and its lease; the proof goes no further', async () => {
    const { went, call, request } = await settled(paid);
    assert.deepEqual([went, call.stage, 'payment' in call], [true, 'funded', false]);
    const { funding } = call as FundedCall;
    assert.ok(funding.kind === 'paid');
    assert.deepEqual([funding.record, funding.lease, funding.response.success], [record, lease, true]);
    assert.deepEqual([request?.terms.payId, request?.refusal, request?.repeatable], [PAY_ID, undefined, true]);
  });

  it('paid, with an answer that an earlier attempt kept: answered', async () => {
    const { went, call } = await settled({ ...paid, kept });
    assert.deepEqual([went, call.stage, (call as AnsweredCall).keptBefore], [true, 'answered', true]);
  });

  it('replayed: the kept answer with its own annotations, marked unless the call had waited for it', async () => {
    for (const joined of [false, true]) {
      const { went, written } = await settled({
        kind: 'replayed',
        record: { ...record, requestId: 'first' },
        kept,
        joined,
      });
      const [status, { payment, replayed }] = written[0] as [
        number,
        { payment: { requestId: string }; replayed: boolean },
      ];
      assert.deepEqual([went, status, payment.requestId, replayed], [false, 200, 'first', !joined]);
    }
  });

  it('refused: 402', async () => {
    const { went, written } = await settled(refusedBefore);
    assert.equal(went, false);
    assert.match(JSON.stringify(written), /^\[\["402".*insufficient_funds/);
  });

  const worthless = { state: 'refused', evidence: 'expired', reason: 'expired', payId: PAY_ID } as PaymentRecord;
  const refused = { kind: 'refused', owed: SafeToRechallenge.refused(worthless, true) } as const;
  for (const [what, stage, result] of [
    ['without a record any more', 'prepared', refusedBefore],
    ['of what is not sold any more', 'received', refused],
  ] as const)
    it(`refused, of a collecting call ${what}: its first refusal and never 402`, async () => {
      const answers: unknown[] = [];
      const before = { stage };
      const collecting = { before, refuse: (answer: unknown) => void answers.push(answer) };
      const { went, error, call, written } = await settled(result, proven({ collecting }));
      assert.deepEqual([went, error, call, written, answers], [false, undefined, before, [], [{ kind: 'none' }]]);
    });

  it('refused, of a collecting call whose payment came to nothing: 402', async () => {
    const collecting = { before: { stage: 'prepared' }, refuse: () => assert.fail('not by its record') };
    assert.match(JSON.stringify((await settled(refused, proven({ collecting }))).written), /^\[\["402".*expired/);
  });

  for (const result of [{ kind: 'conflict' }, { kind: 'spent', state: 'used' }] as const)
    it(`${result.kind}: is settled as the proof bought it, where that was the same with another method`, async () => {
      const request = { method: 'POST', path: '/then', headers: {}, body: undefined } as const;
      const { went, call, requests } = await settled(result, proven(), SELLING, async (now) => ({ ...now, request }));
      assert.deepEqual([went, (call as FundedCall).request, requests.length], [true, request, 2]);
      assert.notEqual(requests[0]?.terms.bind, requests[1]?.terms.bind);
    });

  const ERRORS: readonly (readonly [SettlementResult, code: string, details: object, annotated: boolean])[] = [
    [{ kind: 'in_flight' }, 'PAYMENT_REPLAYED', { state: 'in_flight' }, false],
    [{ kind: 'failed', record, retryable: true }, 'BACKEND_ERROR', { state: 'undelivered' }, true],
    [{ kind: 'conflict' }, 'IDEMPOTENCY_CONFLICT', {}, false],
    [{ kind: 'spent', state: 'delivered', record }, 'PAYMENT_REPLAYED', { state: 'delivered' }, false],
    [{ kind: 'uncertain', record, cause: 0 }, 'PAYMENT_SETTLEMENT_FAILED', { settlementUncertain: true }, true],
    [{ kind: 'unavailable', cause: 'c' }, 'PAYMENT_PROVIDER_UNAVAILABLE', {}, false],
    [
      { kind: 'postponed', reason: 'backend_unreachable', cause: 'c' },
      'GATEWAY_BUSY',
      { reason: 'backend_unreachable' },
      false,
    ],
    [{ kind: 'crowded' }, 'GATEWAY_BUSY', {}, false],
    [{ kind: 'gone' }, 'GATEWAY_BUSY', {}, false],
    [{ kind: 'gate_closed' }, 'GATEWAY_BUSY', {}, false],
  ];
  for (const [result, code, details, annotated] of ERRORS)
    it(`${result.kind}: ${code}${annotated ? ', with what is known of the money' : ''}`, async () => {
      const { went, error, call } = await settled(result);
      assert.deepEqual([went, error?.code], [false, code]);
      assert.partialDeepStrictEqual(error?.details ?? {}, details);
      assert.equal((call as ProvenCall).annotations?.payment !== undefined, annotated);
    });

  it('spent on another purchase: nothing of that is shown', async () => {
    const { error } = await settled({ kind: 'spent', state: 'used', record });
    assert.deepEqual(error?.details, { state: 'used' });
  });

  it('of a store that is silent: STORAGE_ERROR', async () => {
    assert.equal((await settled(new StoreError('gone'))).error?.code, 'STORAGE_ERROR');
  });

  it('of a free call is not begun', async () => {
    const { went, request } = await settled(paid, free());
    assert.deepEqual([went, request], [true, undefined]);
  });
});

describe('a call that is settled after the backend answered', () => {
  const agreed = { ...OFFERS.get('report'), leastSeconds: 80 };
  const after = (more: object = {}) => proven({ agreed, ...more });
  const exchange = (answer: () => Promise<BackendAnswer>) => {
    const sent: BackendRequest[] = [];
    const held: HeldConnection = {
      exchange: (request) => {
        sent.push(request);
        return answer();
      },
      release: () => undefined,
    };
    return { held, sent };
  };
  const paidRecord = { ...record, payId: PAY_ID, payer: '0xpayer' } as PaymentRecord;

  it('says so in its terms, and brings what it needs: its network, and no earlier answer', async () => {
    const { request } = await settled(paid, after());
    assert.equal(request?.terms.settle, 'after');
    assert.deepEqual([request?.work?.network, request?.work?.answerOf], ['network', undefined]);
  });

  it('brings the payment that its token names', async () => {
    const token = { text: 'token', genuineForMs: 1, offeredUntilMs: 1, answerOf: 'ab' };
    assert.equal((await settled(paid, after({ token }))).request?.work?.answerOf, 'ab');
  });

  it('every other one brings nothing of it', async () => {
    const { request } = await settled(paid);
    assert.deepEqual([request?.terms.settle, request?.work], [undefined, undefined]);
  });

  it('is sent over the held connection, under the key of its payment, and its answer is recorded', async () => {
    const call = after();
    const { work, journal } = (await settled(paid, call)).request ?? assert.fail('not settled');
    const { held, sent } = exchange(async () => asAnswer(kept));
    const worked = await work?.call(paidRecord, held);
    assert.ok(worked?.kind === 'answer');
    assert.equal(worked.answer.status, kept.status);
    const { 'idempotency-key': key } = sent[0]?.headers ?? {};
    assert.equal(key, backendIdempotencyKey(PAY_ID));
    assert.deepEqual(
      journal.take().map(({ type, data }) => [type, data]),
      [['backend.called', { status: kept.status }]],
    );
  });

  it('fails with the backend: nothing is recorded yet, because nothing may come of it', async () => {
    const { work, journal } = (await settled(paid, after())).request ?? assert.fail('not settled');
    const failed = await work?.call(paidRecord, exchange(async () => asAnswer({ ...kept, status: 500 })).held);
    assert.deepEqual(failed, { kind: 'failed', failure: { status: 500, requestWritten: true } });
    const lost = new BackendError('timeout', true);
    assert.deepEqual(await work?.call(paidRecord, exchange(() => Promise.reject(lost)).held), {
      kind: 'failed',
      failure: { status: 0, reason: 'timeout', requestWritten: true, cause: lost },
    });
    assert.deepEqual(journal.take(), []);
  });

  it('unworked: the failure of the backend, and that no payment was taken', async () => {
    const failure = { status: 503, requestWritten: true };
    const { went, error, written } = await settled({ kind: 'unworked', failure }, after());
    assert.deepEqual(
      [went, error?.code, error?.details, written],
      [false, 'BACKEND_ERROR', { reason: 'backend_5xx' }, []],
    );
    assert.match(error?.message ?? '', /no payment was taken/);
  });

  it('refused: the offer depends on whether an answer waits', async () => {
    const asked: unknown[] = [];
    const offerTo: Selling['offerTo'] = (_req, _id, _offer, owed) => {
      asked.push(owed?.answerOf);
      return OFFERS.get('report') as Offer;
    };
    const gone = { kind: 'gone' } as const;
    for (const answerOf of [undefined, PAY_ID])
      await settled(
        { kind: 'refused', owed: SafeToRechallenge.discarded(gone, 'insufficient_funds', answerOf) },
        after(),
        { ...SELLING, offerTo },
      );
    assert.deepEqual(asked, [undefined, PAY_ID]);
  });
});

describe('the mandate of a settlement', () => {
  it('goes with the terms, and the answer has the receipt for it', async () => {
    const call = proven({ mandated: ACCEPTED });
    const { request } = await settled(paid, call);
    assert.match(request?.terms.mandate ?? '', /"reference":"leaf"/);
    const admitted = { ...record, requestId: 'r', mandate: request?.terms.mandate } as PaymentRecord;
    const again = proven({ mandated: ACCEPTED });
    const funded = (await settled({ ...paid, record: admitted }, again)).call as FundedCall;
    assert.equal(funded.authorization?.receipt, 'accepted leaf r no payment');
  });
});
