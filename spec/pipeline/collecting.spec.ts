import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Request } from 'express';
import { GatewayError } from '../../src/errors.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { KnownPayment } from '../../src/payments/settlement/known-payment.ts';
import type { ProofVerifier } from '../../src/payments/settlement/verifier.ts';
import type { Agreed } from '../../src/payments/x402/wire/offers.ts';
import type { ProvenCall, Stage } from '../../src/pipeline/call.ts';
import { createCollector, oneKey, PendingRefusal, unanswered } from '../../src/pipeline/collecting.ts';
import type { Resource } from '../../src/resources/resource.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { callAt, EXPIRED, OFFERS, proven, RESOURCE } from './calls.ts';

const record = { payId: 'p', channel: 'http', amount: '0.02', currency: 'TUSD', units: '20000' } as PaymentRecord;
const agreed = { ...OFFERS.get('report'), amount: '0.02' } as Agreed;
const request = { method: 'GET', path: '/then', headers: {}, body: undefined } as const;
const known = {
  ...{ kind: 'known', record, agreed, request, token: undefined },
  proof: { paymentIdentifier: undefined },
} as unknown as KnownPayment;
const NONE = { kind: 'none' } as const;
const payment = { payId: 'p' };
const GENUINE = { kind: 'genuine', proof: payment } as Verdict;
type Verdict = Awaited<ReturnType<ProofVerifier['verifyKnown']>>;
const catalogue = { byId: new Map([['report', RESOURCE as unknown as Resource]]) };

interface Scripted {
  readonly found?: KnownPayment | typeof NONE | Error;
  readonly verdict?: Verdict;
}

function collectorWith({ found = known, verdict = GENUINE }: Scripted, asked: string[] = []) {
  return createCollector({
    find: async () => {
      asked.push('ledger');
      if (found instanceof Error) throw found;
      return found;
    },
    verifier: {
      verifyKnown: async () => {
        asked.push('signature');
        return verdict;
      },
    },
    networkOf: () => 'network',
    catalogue,
    events: { push: () => undefined, withdraw: () => [] },
    removed: { timeoutMs: 1, maxResponseBytes: 1, headers: {} },
  });
}

/** What becomes of a call that a step refuses. */
async function refused(call: ReturnType<typeof callAt>, thrown: unknown, scripted: Scripted = {}) {
  const asked: string[] = [];
  const { promise, resolve } = Promise.withResolvers<unknown>();
  collectorWith(scripted, asked).refused(thrown, {} as Request, call.res, resolve);
  // A refusal that answers the call itself calls nothing that comes next.
  const error = await Promise.race([promise, new Promise((none) => setImmediate(none, 'answered'))]);
  return { error, asked, call: call.call<ProvenCall>() };
}

const GONE = new GatewayError('RESOURCE_NOT_FOUND');
const INVALID = new GatewayError('INPUT_INVALID');
const CROWDED = unanswered({ kind: 'crowded' });
const pending = (reason?: string) => {
  const answers: unknown[] = [];
  return { answers, refusal: new PendingRefusal((answer) => void answers.push(answer), reason) };
};

const REFUSALS: readonly (readonly [string, Stage, object, GatewayError | undefined])[] = [
  ['whose resource is gone', 'received', {}, GONE],
  ['whose input is not valid any more', 'resolved', {}, INVALID],
  ['whose offer is another by now', 'prepared', {}, undefined],
  ['whose signature cannot be verified now', 'prepared', {}, CROWDED],
  ['whose mandate is refused', 'proven', { payment, mandated: EXPIRED }, undefined],
];

describe('a call that is refused', () => {
  for (const [what, stage, more, thrown] of REFUSALS) {
    const make = () => callAt(stage, more);

    it(`${what}, with a payment that is known: collects it, as it was bought`, async () => {
      const { answers, refusal } = pending('invalid_payment_requirements');
      const call = make();
      const before = call.call();
      const { error, call: after, asked } = await refused(call, thrown ?? refusal);
      assert.deepEqual([error, answers, call.events()], [undefined, [], []]);
      assert.deepEqual([after.stage, after.payment, after.agreed, after.request], ['proven', payment, agreed, request]);
      assert.equal(after.refusal, thrown === undefined ? 'invalid_payment_requirements' : 'not_sold');
      assert.equal(after.collecting?.before, before);
      assert.equal(after.mandated, Object(more).mandated);
      assert.deepEqual(asked, stage === 'proven' ? ['ledger'] : ['ledger', 'signature']);
    });

    it(`${what}, without a record: the refusal stands`, async () => {
      const { answers, refusal } = pending();
      const call = make();
      const before = call.call();
      const { error, call: after } = await refused(call, thrown ?? refusal, { found: NONE });
      assert.deepEqual([error, answers], thrown === undefined ? ['answered', [NONE]] : [thrown, []]);
      assert.equal(after, before);
    });

    it(`${what}, and the store does not answer: STORAGE_ERROR, and never 402`, async () => {
      const { answers, refusal } = pending();
      const { error } = await refused(make(), thrown ?? refusal, { found: new StoreError('gone') });
      assert.deepEqual([Object(error).code, answers], ['STORAGE_ERROR', []]);
    });
  }

  const others = { ...known, request: undefined };
  it('of something else than was bought, or without the secret: nothing is shown where nothing is sold', async () => {
    for (const [stage, thrown] of [
      ['received', GONE],
      ['resolved', INVALID],
    ] as const) {
      const { error, asked } = await refused(callAt(stage), thrown, { found: others });
      assert.deepEqual([error, asked], [thrown, ['ledger']]);
    }
  });

  it('of something else than was bought, or without the secret: the record answers in the place of a 402', async () => {
    const { answers, refusal } = pending();
    const call = callAt('prepared');
    const { request: own } = call.call<ProvenCall>();
    const { call: after } = await refused(call, refusal, { found: others });
    assert.deepEqual([after.stage, after.request, answers], ['proven', own, []]);
  });

  it('of a removed resource, over another channel than it was paid on: the refusal stands', async () => {
    const found = { ...known, record: { ...record, channel: 'mcp' } } as KnownPayment;
    assert.equal((await refused(callAt('received'), GONE, { found })).error, GONE);
    const { call } = await refused(callAt('resolved'), INVALID, { found });
    assert.equal(call.stage, 'proven', 'it is sold on both');
  });

  it('of a method that the operation has no more: with the limits of it, and not repeated', async () => {
    const found = { ...known, request: { ...request, method: 'POST' } } as KnownPayment;
    const { call } = await refused(callAt('prepared'), INVALID, { found });
    assert.partialDeepStrictEqual(call.resource.backend, { method: 'POST', path: '', idempotent: false });
  });

  it('with a signature that is not the payer’s: the refusal stands', async () => {
    const { answers, refusal } = pending();
    await refused(callAt('prepared'), refusal, { verdict: { kind: 'refused' } });
    assert.deepEqual(answers, [NONE]);
    assert.equal((await refused(callAt('received'), GONE, { verdict: { kind: 'refused' } })).error, GONE);
  });

  for (const [verdict, code] of [
    [{ kind: 'crowded' }, 'GATEWAY_BUSY'],
    [{ kind: 'unavailable', cause: 0 }, 'PAYMENT_PROVIDER_UNAVAILABLE'],
  ] as const)
    it(`with a signature that cannot be verified now: ${code}`, async () => {
      const { answers, refusal } = pending();
      const { error } = await refused(callAt('prepared'), refusal, { verdict });
      assert.deepEqual([Object(error).code, answers], [code, []]);
    });

  it('with a key that is none: INPUT_INVALID', async () => {
    const { error } = await refused(callAt('received', { idempotencyKey: { kind: 'illegible' } }), GONE);
    assert.equal(Object(error).code, 'INPUT_INVALID');
  });

  it('a second time goes on all the same, and begins nothing', async () => {
    const collecting = { before: {}, refuse: () => undefined };
    const { call, asked } = await refused(proven({ collecting, refusal: 'late' }), pending().refusal);
    assert.deepEqual([call.refusal, call.collecting, asked], ['not_sold', collecting, []]);
  });

  it('by a bug, or once it is funded, is answered by no record', async () => {
    const bug = new Error('bug');
    for (const [stage, thrown] of [
      ['prepared', bug],
      ['funded', INVALID],
    ] as const) {
      const { error, asked } = await refused(callAt(stage), thrown);
      assert.deepEqual([error, asked], [thrown, []]);
    }
  });
});

describe('a call whose operation has another method by now', () => {
  it('is what its proof bought', async () => {
    const call = proven({ refusal: 'late' }).call<ProvenCall>();
    const bought = await collectorWith({}).asBought(call);
    assert.deepEqual([bought?.request, bought?.refusal, bought?.collecting], [request, 'late', undefined]);
  });

  it('is none where the proof bought something else', async () => {
    for (const found of [NONE, { ...known, request: undefined }] as const)
      assert.equal(await collectorWith({ found }).asBought(proven().call<ProvenCall>()), undefined);
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
