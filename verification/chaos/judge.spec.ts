import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { PATHS, PRICE_UNITS } from './fleet.ts';
import { type Evidence, type Excused, judge } from './judge.ts';
import type { CallStory, ProofStory } from './story.ts';

const NONCE = `0x${'a1'.repeat(32)}` as const;
const PAY_ID = 'b2'.repeat(32);
const MERCHANT_KEY = 'pay_of-the-proof';
const TRANSACTION = `0x${'c3'.repeat(32)}`;
const TARGET = { resource: 'report', input: 'call-1' } as const;
/** Unix milliseconds. */
const SENT_AT = 1_000_000;
const DELIVERED = { resource: 'reports', input: TARGET.input, execution: 1 };
const ANSWER = { sentAt: SENT_AT, at: SENT_AT + 500, target: TARGET, delivered: DELIVERED };
const REFUSAL = {
  at: SENT_AT + 900,
  status: 409,
  code: 'PAYMENT_REPLAYED',
  state: 'undelivered',
  hasPayment: true,
} as const;

function paidBy(transaction: string) {
  return { how: 'paid' as const, transaction, chainId: 31_337, units: PRICE_UNITS };
}

/** The evidence of one paid call whose last receipt has `delivered: false`. */
function undelivered(
  seen: Partial<Pick<ProofStory, 'answers' | 'refusals' | 'lostAt'>>,
  marked: boolean,
  { cuts = [] }: Partial<Pick<Evidence, 'cuts'>> = {},
): Evidence {
  const proof: ProofStory = {
    nonce: NONCE,
    payer: `0x${'d4'.repeat(20)}`,
    payId: PAY_ID,
    merchantKey: MERCHANT_KEY,
    firstSentAt: SENT_AT,
    lastSentAt: SENT_AT,
    answers: [],
    refusals: [],
    lostAt: [],
    challenges: [],
    ...seen,
  };
  const end = proof.answers.length > 0 ? 'answered' : 'refused';
  const call: CallStory = {
    id: 1,
    kind: 'honest',
    target: TARGET,
    channel: 'http',
    key: undefined,
    echoes: false,
    proofs: [proof],
    lines: [{ proof, target: TARGET, header: '', end }],
    oddities: [],
  };
  const receipt: Receipt = {
    id: 'receipt_1',
    requestId: 'request-1',
    resourceId: TARGET.resource,
    protocol: 'http',
    at: new Date(SENT_AT).toISOString(),
    delivered: false,
    backendStatus: 0,
    durationMs: 0,
    ...(marked ? { metadata: { deliveryUncertain: true as const } } : {}),
  };
  const settled = {
    type: 'payment.settled',
    data: { transaction: TRANSACTION },
  } as unknown as Evidence['store']['events'][number];
  const work = { execution: 1, resource: 'reports', inputs: new Set([TARGET.input]), asked: [SENT_AT + 100] };
  return {
    calls: [call],
    chain: {
      spent: new Map([[NONCE, paidBy(TRANSACTION)]]),
      income: PRICE_UNITS,
    },
    work: new Map([[MERCHANT_KEY, work]]),
    store: {
      payments: new Map([[PAY_ID, { state: 'undelivered', receiptId: receipt.id, recovered: false, hasToken: false }]]),
      receipts: new Map([[PAY_ID, [receipt]]]),
      events: [settled],
    },
    cuts,
    strays: [],
    open: [],
  };
}

const broken = (evidence: Evidence): readonly string[] => judge(evidence).violations.map(({ goal }) => goal);
const excusedBy = (evidence: Evidence): Excused => judge(evidence).excused;

describe('the judge, for a receipt with `delivered: false`', () => {
  it('reports a missing mark when the buyer has the whole answer', () => {
    assert.deepEqual(broken(undelivered({ answers: [ANSWER] }, false)), ['deliveredUnmarked']);
  });

  it('accepts the mark when the buyer has the whole answer', () => {
    assert.deepEqual(broken(undelivered({ answers: [ANSWER] }, true)), []);
  });

  it('excuses a missing mark where a power cut may have lost it, and only there', () => {
    const cut = { sampledAt: ANSWER.at - 100, killedAt: ANSWER.at + 100, lostBytes: 1 };
    const lost = undelivered({ answers: [ANSWER] }, false, { cuts: [cut] });
    assert.deepEqual([broken(lost), excusedBy(lost).marksLost], [[], 1]);
    const readLate = { ...ANSWER, at: cut.killedAt + 10_000 };
    assert.deepEqual(broken(undelivered({ answers: [readLate] }, false, { cuts: [cut] })), []);
    const early = { ...ANSWER, at: cut.sampledAt - 1 };
    const late = { ...readLate, sentAt: cut.killedAt + 1 };
    for (const whole of [early, late])
      assert.deepEqual(broken(undelivered({ answers: [ANSWER, whole] }, false, { cuts: [cut] })), [
        'deliveredUnmarked',
      ]);
  });

  it('reports a mark when every request got a complete refusal', () => {
    assert.deepEqual(broken(undelivered({ refusals: [REFUSAL] }, true)), ['markedUnsent']);
    assert.deepEqual(broken(undelivered({ refusals: [REFUSAL] }, false)), []);
  });

  it('accepts a mark when a request was lost', () => {
    assert.deepEqual(broken(undelivered({ refusals: [REFUSAL], lostAt: [SENT_AT + 200] }, true)), []);
  });
});

/** The evidence of one call whose proofs the chain shows paid or not, in order. */
function provenCall(
  resource: CallStory['target']['resource'],
  proofs: readonly { readonly paid: boolean; readonly worked?: number; readonly bought?: number }[],
): Evidence {
  const target = { ...TARGET, resource };
  const delivered = (execution: number) => ({ ...DELIVERED, resource: PATHS[resource], execution });
  const base = undelivered({}, false);
  const [call] = base.calls;
  const [sample] = call?.proofs ?? [];
  if (call === undefined || sample === undefined) throw new Error('no call');
  const told = proofs.map(({ bought }, at): ProofStory => {
    const name = String(at);
    const answers = bought === undefined ? [] : [{ ...ANSWER, target, delivered: delivered(bought) }];
    return { ...sample, nonce: `0x${name}`, payId: name, merchantKey: name, answers };
  });
  const paid = proofs.flatMap(({ paid: isPaid }, at) => (isPaid ? [String(at)] : []));
  const [receipt] = base.store.receipts.get(PAY_ID) ?? [];
  if (receipt === undefined) throw new Error('no receipt');
  const record = { state: 'delivered', receiptId: receipt.id, recovered: false, hasToken: false };
  const event = (at: string) => ({ type: 'payment.settled', data: { transaction: at } }) as never;
  return {
    ...base,
    calls: [
      { ...call, target, proofs: told, lines: told.map((proof) => ({ proof, target, header: '', end: 'answered' })) },
    ],
    chain: {
      spent: new Map(paid.map((at) => [`0x${at}` as const, paidBy(at)])),
      income: PRICE_UNITS * BigInt(paid.length),
    },
    work: new Map(
      proofs.flatMap(({ worked }, at) => {
        const work = {
          execution: worked ?? 0,
          resource: PATHS[resource],
          inputs: new Set([target.input]),
          asked: [SENT_AT],
        };
        return worked === undefined ? [] : [[String(at), work] as const];
      }),
    ),
    store: {
      payments: new Map(paid.map((at) => [at, record])),
      receipts: new Map(paid.map((at) => [at, [{ ...receipt, delivered: true }]])),
      events: paid.map(event),
    },
  };
}

describe('the judge, for work that is not paid', () => {
  it('reports it where the money moves first, and accepts it where it moves after the answer', () => {
    const proofs = [{ paid: false, worked: 1 }];
    assert.deepEqual(broken(provenCall('report', proofs)), ['deliveredUnpaid']);
    assert.deepEqual(broken(provenCall('later_report', proofs)), []);
  });

  it('reports an answer that left without being paid, in any order', () => {
    const proofs = [{ paid: false, worked: 1, bought: 1 }];
    for (const resource of ['report', 'later_report'] as const)
      assert.deepEqual(broken(provenCall(resource, proofs)), ['deliveredUnpaid']);
  });

  it('accepts that a later proof buys it, where the money moves after the answer', () => {
    const proofs = [
      { paid: false, worked: 1 },
      { paid: true, bought: 1 },
    ];
    assert.deepEqual(broken(provenCall('later_report', proofs)), []);
    assert.deepEqual(broken(provenCall('report', proofs)), ['deliveredUnpaid', 'wrongAnswers', 'executionsNotOne']);
  });

  it('reports an answer that belongs to no proof of the call', () => {
    const proofs = [{ paid: true, worked: 1, bought: 2 }];
    assert.deepEqual(broken(provenCall('later_report', proofs)), ['wrongAnswers']);
  });
});

describe('the judge, for two networks', () => {
  const evidence = undelivered({ answers: [ANSWER] }, true);

  it('reports a payment that the facilitator of another network got', () => {
    assert.deepEqual(broken({ ...evidence, strays: [NONCE] }), ['wrongNetwork']);
  });

  it('reports a proof that was signed for another network than it says, and taken', () => {
    const calls = evidence.calls.map((call) => ({ ...call, kind: 'liar' as const }));
    assert.deepEqual(broken({ ...evidence, calls }), ['wrongNetwork']);
  });

  it('reports less income than the price on the network of a payment', () => {
    const spent = new Map([[NONCE, { ...paidBy(TRANSACTION), units: PRICE_UNITS + 1n }]]);
    assert.deepEqual(broken({ ...evidence, chain: { ...evidence.chain, spent } }), ['incomeUnexplained']);
  });
});
