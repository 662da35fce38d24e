import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProofVerifier } from '../../../src/payments/settlement/verifier.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { PendingRefusal } from '../../../src/pipeline/collecting.ts';
import { createSelling, type Selling } from '../../../src/pipeline/middleware/challenge.ts';
import { verify } from '../../../src/pipeline/middleware/verify.ts';
import { callAt, free, OFFERS, passed, SELLING } from '../calls.ts';

type Verdict = Awaited<ReturnType<ProofVerifier['verify']>>;
const proof = { payId: 'p' };
const agreed = { amount: '0.02' };
const genuine = (refusal?: string) =>
  ({ kind: 'genuine', proof, agreed, refusal, key: 'key', token: undefined }) as Verdict;
const NONE = { kind: 'none' } as const;

/** How a call leaves the middleware after a verdict on its proof. */
async function verified(verdict: Verdict, call = callAt('prepared'), selling: Selling = SELLING) {
  const noted: string[] = [];
  const noteProof = (_req: unknown, became: string) => void noted.push(became);
  const verifier = { verify: async () => verdict, priceShown: () => undefined };
  const { went, error } = await passed(verify(selling, verifier, { networkOf: () => 'network', noteProof }), call.res);
  return { ...call, went, error: error as unknown, call: call.call<ProvenCall>(), noted };
}

/** The same, of a proof that is refused. */
async function refused(verdict: Partial<Verdict>, call = callAt('prepared'), selling: Selling = SELLING) {
  const whole = { kind: 'refused', reason: 'invalid_scheme', answerOf: undefined, ...verdict } as Verdict;
  const result = await verified(whole, call, selling);
  assert.ok(result.error instanceof PendingRefusal);
  return { ...result, refusal: result.error };
}

describe('the proof of a paid call', () => {
  it('genuine: the call is proven, with what the checks have against it and its one key', async () => {
    const { went, call } = await verified(genuine('late'));
    const { stage, payment, refusal, idempotencyKey } = call;
    assert.deepEqual([went, stage, payment, refusal, idempotencyKey], [true, 'proven', proof, 'late', 'key']);
    assert.equal(call.agreed, agreed, 'the offer that it accepts');
  });

  it('refused: 402 with the reason, once the ledger has no record of it', async () => {
    const { went, refusal, written, events, noted } = await refused({});
    assert.deepEqual([went, written, events(), noted, refusal.reason], [false, [], [], [], 'invalid_scheme']);
    refusal.refuse(NONE);
    assert.match(JSON.stringify(written), /PAYMENT_INVALID.*invalid_scheme/);
    assert.deepEqual(noted, ['refused']);
  });

  it('refused: the answer that its token names is offered on, whatever the budget', async () => {
    const asked: unknown[] = [];
    const offer = Object.assign(Object.create(OFFERS.get('report') as Offer), {
      upfront: {},
      issueToken: (_bind: string, answerOf: string) => {
        asked.push(answerOf);
        return 'token';
      },
    }) as Offer;
    const selling = createSelling(new Map([['report', offer]]), { worksUnpaid: () => false });
    (await refused({ answerOf: 'p' } as Verdict, callAt('prepared'), selling)).refusal.refuse(NONE);
    assert.deepEqual(asked, ['p']);
  });

  it('of a blocked payer: 403 once the ledger has no record of it, and a proof that bought nothing', async () => {
    const { refusal, events, noted } = await refused({ kind: 'blocked' });
    assert.deepEqual([events(), noted], [[], []]);
    assert.throws(() => refusal.refuse(NONE), { code: 'PAYER_BLOCKED', status: 403 });
    assert.deepEqual(noted, ['refused']);
  });

  for (const [title, verdict, code] of [
    ['too many signatures under way: busy', { kind: 'crowded' }, 'GATEWAY_BUSY'],
    ['a silent chain: the provider is unavailable', { kind: 'unavailable', cause: 0 }, 'PAYMENT_PROVIDER_UNAVAILABLE'],
  ] as const)
    it(title, async () => {
      const { went, error, written } = await verified(verdict);
      assert.deepEqual([went, Object(error).code, written], [false, code, []]);
    });

  for (const [title, call] of [
    ['a free call', free()],
    ['a collecting call', callAt('proven')],
  ] as const)
    it(`of ${title} is not looked at`, async () => {
      assert.equal((await verified({ kind: 'crowded' }, call)).went, true);
    });
});
