import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import type { ProofVerifier } from '../../../src/payments/settlement/verifier.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import type { ProvenCall } from '../../../src/pipeline/call.ts';
import { oneKey, verify } from '../../../src/pipeline/middleware/verify.ts';
import { createSelling, type Selling } from '../../../src/pipeline/steps/payment-required.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { callAt, free, OFFERS, passed, SELLING } from '../calls.ts';

type Verdict = Awaited<ReturnType<ProofVerifier['verify']>>;
const proof = { payId: 'p' };
const agreed = { amount: '0.02' };
const genuine = (refusal?: string) =>
  ({ kind: 'genuine', proof, agreed, refusal, key: 'key', token: undefined }) as Verdict;
const before = { stage: 'received' };
const collecting = { agreed: {}, before, otherwise: new GatewayError('RESOURCE_NOT_FOUND') };

/** How a call leaves the middleware after a verdict on its proof. */
async function verified(verdict: Verdict | Error, call = callAt('prepared'), selling: Selling = SELLING) {
  const verifier: ProofVerifier = {
    verify: async () => {
      if (verdict instanceof Error) throw verdict;
      return verdict;
    },
  };
  const { went, error } = await passed(
    verify(selling, verifier, { networkOf: () => 'network', noteProof: () => undefined }),
    call.res,
  );
  return { went, error, call: call.call<ProvenCall>(), written: call.written };
}

describe('the proof of a paid call', () => {
  it('genuine: the call is proven, with what the checks have against it and its one key', async () => {
    const { went, call } = await verified(genuine('late'));
    const { stage, payment, refusal, idempotencyKey } = call;
    assert.deepEqual([went, stage, payment, refusal, idempotencyKey], [true, 'proven', proof, 'late', 'key']);
    assert.equal(call.agreed, agreed, 'the offer that it accepts');
  });

  it('refused: 402 with the reason', async () => {
    const { went, written } = await verified({ kind: 'refused', reason: 'invalid_scheme', answerOf: undefined });
    assert.equal(went, false);
    assert.match(JSON.stringify(written), /PAYMENT_INVALID.*invalid_scheme/);
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
    const selling = createSelling(new Map([['report', offer]]), () => false);
    await verified({ kind: 'refused', reason: 'invalid_scheme', answerOf: 'p' }, callAt('prepared'), selling);
    assert.deepEqual(asked, ['p']);
  });

  const SILENT = new StoreError('gone');
  for (const [title, verdict, code] of [
    ['too many signatures under way: busy', { kind: 'crowded' }, 'GATEWAY_BUSY'],
    ['a silent chain: the provider is unavailable', { kind: 'unavailable', cause: 0 }, 'PAYMENT_PROVIDER_UNAVAILABLE'],
    ['a silent store: STORAGE_ERROR', SILENT, 'STORAGE_ERROR'],
  ] as const)
    it(title, async () => {
      const { went, error, written } = await verified(verdict);
      assert.deepEqual([went, error?.code, written], [false, code, []]);
    });

  it('of a collecting call begins nothing anew, and refused gets the first refusal, not 402', async () => {
    const good = await verified(genuine(), callAt('prepared', { collecting }));
    assert.equal(good.call.refusal, 'not_sold');
    const verdict = { kind: 'refused', reason: 'invalid_scheme', answerOf: 'p' } as const;
    const refused = await verified(verdict, callAt('prepared', { collecting }));
    assert.deepEqual([refused.error, refused.call, refused.written], [collecting.otherwise, before, []]);
  });

  it('of a free call is not looked at', async () => {
    assert.equal((await verified(new Error('verified'), free())).went, true);
  });
});

const refuses = (reason: string) => (thrown: unknown) => {
  assert.ok(thrown instanceof GatewayError);
  assert.deepEqual([thrown.code, thrown.details?.reason], ['INPUT_INVALID', reason]);
  assert.ok(!thrown.message.includes('secret'), 'a key is never quoted');
  return true;
};

describe('the one key of a paid call', () => {
  it('may be absent, the header, the identifier of the proof, or both when they are equal', () => {
    assert.equal(oneKey(undefined, undefined), undefined);
    assert.equal(oneKey('k', undefined), 'k');
    assert.equal(oneKey(undefined, 'identifier-of-16'), 'identifier-of-16');
    assert.equal(oneKey('identifier-of-16', 'identifier-of-16'), 'identifier-of-16');
  });

  it('two that differ are refused, also when only their case does', () => {
    for (const header of ['secret-of-16-chars', 'IDENTIFIER-of-16'])
      assert.throws(() => oneKey(header, 'identifier-of-16'), refuses('idempotency_keys_differ'));
  });

  it('is 1 to 255 printable ASCII characters', () => {
    for (const key of ['x', ' ', '~', 'a b', 'x'.repeat(255)]) assert.equal(oneKey(key, undefined), key);
    for (const key of ['', 'x'.repeat(256), 'secret\n', 'secret\t', 'secret\x7f', 'secr\u00e9t', 'secret\u{1f4b6}'])
      assert.throws(() => oneKey(key, undefined), refuses('idempotency_key_malformed'), JSON.stringify(key));
  });

  it('that came twice is refused, also beside an identifier', () => {
    for (const identifier of [undefined, 'identifier-of-16'])
      assert.throws(() => oneKey({ kind: 'illegible' }, identifier), refuses('idempotency_key_malformed'));
  });
});
