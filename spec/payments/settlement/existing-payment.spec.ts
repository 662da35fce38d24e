import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { FORGOTTEN } from '../../../src/payments/ledger/table.ts';
import { createFindKnown } from '../../../src/payments/settlement/known-payment.ts';
import type { SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { keyDigest, paymentTerms, tokenDigest, tokenId } from '../../../src/payments/settlement/terms.ts';
import { proofDigest } from '../../../src/payments/x402/verify/verify.ts';
import { BUYER_TOKEN, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { freshAccount, freshAddress, genuineProof, offerFor, RESOURCE_URL, termsFor } from '../x402/signing.ts';
import { TERMS, tokensUnder } from './tokens.ts';
import { EXPIRED, freshTerms, HASH, KEEP_ANSWER_MS, worldOfEachTest } from './world.ts';

const TOKEN = 'token-of-the-buyer';
const OTHER_TOKEN = 'token-of-an-onlooker';
const KEY = 'key-of-the-buyer';
const OTHER_KEY = 'key-of-an-onlooker';
const DAY_MS = 24 * 60 * 60 * 1_000;

/** What a call shows that only its buyer knows. */
interface Secrets {
  readonly token?: string;
  /** It is forged or too old. */
  readonly worthless?: true;
  /** Of a public 402: other payments show it too. */
  readonly shared?: true;
  readonly key?: string;
}

/** In the order in which a payment comes to them. */
const REFUND_STATES = ['refundDue', 'refunding', 'refunded'] as const;
/** `running`: leased to a running attempt. `uncertain`: settling, and no attempt works on it. */
const STANDINGS = ['running', 'settled', 'delivered', 'undelivered', 'uncertain', 'refused', ...REFUND_STATES] as const;
type Standing = (typeof STANDINGS)[number];

describe('the same proof again: the table of contract 4.3 and 4.4', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, later, record } = world;

  /** Terms as a call with these secrets has them. */
  const showing = ({ token, worthless, shared, key }: Secrets): Pick<SettlementRequest, 'terms' | 'token'> => {
    const { keyDigest: _key, tokenDigest: _token, ...terms } = world.terms;
    const own = key === undefined ? terms : { ...terms, keyDigest: keyDigest(terms.payId, key) };
    if (token === undefined) return { terms: own };
    const id = tokenId(shared ? token : `${token} ${terms.payId}`);
    return {
      terms: { ...own, tokenDigest: tokenDigest(terms.payId, token) },
      token: worthless ? { kind: 'worthless' } : { kind: 'issued', id, forMs: 720_000 },
    };
  };
  /** Brings the payment of a first call with these secrets into this state. */
  const standing = async (where: Standing, secrets: Secrets): Promise<void> => {
    const { script } = world.peer;
    if (where === 'uncertain' || where === 'refused') {
      script.settle = async () => (where === 'refused' ? EXPIRED : { kind: 'uncertain', cause: 'cut' });
      await settleOnce(showing(secrets));
      script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
      return;
    }
    const result = await pay(showing(secrets));
    if (where === 'delivered') await world.deliver(result, { answer: keptAnswer() });
    if (where === 'settled') later(8_000);
    if (['running', 'settled', 'delivered'].includes(where)) return;
    await world.failDelivery(result);
    const refund = (REFUND_STATES as readonly Standing[]).indexOf(where);
    if (refund < 0) return;
    const { payId, owner, fence } = (await pay(showing(secrets))).record;
    for (const to of REFUND_STATES.slice(0, refund + 1)) {
      const facts = to === 'refundDue' ? {} : { refundTransaction: HASH };
      await world.ledger.advance({ payId, owner, fence, step: to, to, leaseMs: 0, facts, events: [] });
    }
  };
  const answerOf = (result: SettlementResult): string => {
    if (result.kind === 'spent') return `spent ${result.state}${result.guarded ? ' guarded' : ''}`;
    if (result.kind === 'in_flight') return result.alone ? 'in_flight alone' : 'in_flight';
    return result.kind === 'replayed' ? `replayed${result.joined ? ' joined' : ''}` : result.kind;
  };
  const again = async (secrets: Secrets, joined = false): Promise<string> =>
    answerOf(await settleOnce(showing(secrets), world.ledger, joined));
  const words = ({ token, worthless, key }: Secrets): string =>
    [key && `the key ${key}`, token && `the ${worthless ? 'worthless ' : ''}token ${token}`]
      .filter((word) => word !== undefined)
      .join(' and ') || 'nothing';

  const OPEN = ['in_flight', 'paid', 'replayed', 'paid'] as const;
  const SHUT = ['in_flight alone', 'in_flight alone', 'spent delivered', 'spent undelivered guarded'] as const;
  /** No secret guards the record, and none opens its answer. */
  const BARE = ['in_flight alone', 'paid', 'spent delivered', 'paid'] as const;
  /** What the first call showed, what the next one shows; the answer by state. */
  const rows: readonly (readonly [Secrets, Secrets, readonly [string, string, string, string]])[] = [
    [{ token: TOKEN }, { token: TOKEN }, OPEN],
    [{ token: TOKEN }, { token: TOKEN, worthless: true }, OPEN],
    [{ token: TOKEN }, { token: TOKEN, key: KEY }, OPEN],
    [{ token: TOKEN }, { token: OTHER_TOKEN }, SHUT],
    [{ token: TOKEN }, {}, SHUT],
    [{ token: TOKEN }, { key: TOKEN }, SHUT],
    [{ key: KEY }, { key: KEY }, OPEN],
    [{ key: KEY }, { key: OTHER_KEY }, SHUT],
    [{ key: KEY }, {}, SHUT],
    [{ key: KEY, token: TOKEN }, { token: TOKEN }, SHUT],
    [{ key: KEY, token: TOKEN }, { key: KEY, token: OTHER_TOKEN }, OPEN],
    [{}, { token: TOKEN }, BARE],
    [{}, { key: KEY }, BARE],
    [{}, {}, BARE],
    [{ token: TOKEN, worthless: true }, { token: TOKEN }, BARE],
    [{ token: TOKEN, worthless: true }, {}, BARE],
  ];
  for (const [first, now, answers] of rows)
    it(`first with ${words(first)}, now with ${words(now)}`, async () => {
      for (const [at, where] of (['running', 'settled', 'delivered', 'undelivered'] as const).entries()) {
        world.terms = freshTerms();
        await standing(where, first);
        const result = await settleOnce(showing(now));
        assert.equal(answerOf(result), answers[at], where);
        if (result.kind === 'replayed') assert.deepEqual(Buffer.from(result.kept.body), Buffer.from(keptAnswer().body));
      }
    });

  const others: readonly (readonly [Standing, Secrets, Secrets, string])[] = [
    ['uncertain', {}, {}, 'uncertain'],
    ['uncertain', { key: KEY }, { key: KEY }, 'uncertain'],
    ['uncertain', { key: KEY }, {}, 'in_flight alone'],
    ['refused', {}, {}, 'refused'],
    ['refused', { key: KEY }, { key: OTHER_KEY }, 'refused'],
    ['refundDue', {}, {}, 'spent refundDue'],
    ['refundDue', { key: KEY }, { key: KEY }, 'spent refundDue'],
    ['refunding', { key: KEY }, { key: KEY }, 'spent refunding'],
    ['refunded', { key: KEY }, { key: KEY }, 'spent refunded'],
  ];
  for (const [where, first, now, answer] of others)
    it(`${where}, first with ${words(first)}, now with ${words(now)}: ${answer}`, async () => {
      await standing(where, first);
      const result = await settleOnce(showing(now));
      assert.equal(answerOf(result), answer);
      if (result.kind === 'refused') assert.equal(result.owed.reason, EXPIRED.reason);
    });

  for (const where of STANDINGS)
    it(`${where}, for another purchase: used, with the key of the first call a conflict; nothing changes`, async () => {
      await standing(where, { key: KEY });
      const before = await record();
      const elsewhere = async (secrets: Secrets) => {
        const { terms, ...shown } = showing(secrets);
        return answerOf(await settleOnce({ terms: { ...terms, bind: sha256('another input') }, ...shown }));
      };
      for (const secrets of [{}, { key: OTHER_KEY }, { token: TOKEN }])
        assert.equal(await elsewhere(secrets), 'spent used');
      assert.equal(await elsewhere({ key: KEY }), 'conflict');
      assert.deepEqual(await record(), before);
    });

  it('a call that came while the answer was being made needs the key all the same when the first call had one', async () => {
    await standing('delivered', { key: KEY });
    for (const strange of [{}, { key: OTHER_KEY }]) assert.equal(await again(strange, true), 'spent delivered');
    assert.equal(await again({ key: KEY }, true), 'replayed joined');
  });

  it('the answer of a call that joined is not marked as replayed', async () => {
    await standing('delivered', { token: TOKEN });
    assert.equal(await again({ token: TOKEN }, true), 'replayed joined');
    for (const [ms, answer] of [
      [3, 'replayed joined'],
      [2, 'replayed'],
    ] as const)
      assert.equal(answerOf(await settleOnce({ ...showing({ token: TOKEN }), elapsedMs: () => ms })), answer);
  });

  it('the key opens the stored answer for a day, a token for the time that is configured', async () => {
    for (const [secrets, ms] of [
      [{ token: TOKEN }, KEEP_ANSWER_MS],
      [{ key: KEY }, DAY_MS],
    ] as const) {
      world.terms = freshTerms();
      await standing('delivered', secrets);
      later(ms - 1);
      assert.equal(await again(secrets), 'replayed');
      later(1);
      assert.equal(await again(secrets), 'spent delivered');
    }
  });

  it('a token that another payment showed first is no secret: the proof alone collects', async () => {
    await standing('delivered', { token: TOKEN, shared: true });
    world.terms = freshTerms();
    await standing('undelivered', { token: TOKEN, shared: true });
    assert.equal((await record())?.tokenDigest, undefined);
    assert.equal(await again({}), 'paid');
  });

  it('calls without the secret ask no peer and use no attempt up, however many', async () => {
    await standing('undelivered', { token: TOKEN });
    const before = await record();
    for (let question = 0; question < 200; question += 1) {
      later(1_000);
      await again(question % 2 === 0 ? {} : { token: `${OTHER_TOKEN}-${question}` });
    }
    assert.deepEqual([await record(), world.peer.names()], [before, ['verify', 'settle']]);
  });

  it('a reconciler goes on with a record whatever its secret', async () => {
    await standing('undelivered', { token: TOKEN });
    const terms = (await record()) ?? assert.fail();
    assert.equal(answerOf(await settleOnce({ terms })), 'paid');
  });
});

const money = termsFor();
const account = freshAccount();
const payment = await genuineProof(account, money);
const { payId } = payment;
const [token, other] = [tokensUnder().issue(undefined, TERMS), tokensUnder().issue(undefined, TERMS)];
const requirements = offerFor(money);
const agreed = { requirements, resourceUrl: RESOURCE_URL, amount: '0.01', currency: 'TUSD' };
const request = { method: 'POST', path: '/then?city=a', headers: {}, body: undefined } as const;
const bought: Parameters<typeof paymentTerms>[0] = {
  ...{ requestId: 'r', callId: 'c', resource: { id: 'report' }, input: { city: 'a' }, payment },
  channel: 'http',
  request: { ...request, callerHeaders: { cookie: 'a' } },
  idempotencyKey: undefined,
  token: { text: token, genuineForMs: 1 },
};
const recordOf = (call: typeof bought, more: object = {}) =>
  ({
    ...paymentTerms(call, agreed),
    state: 'undelivered',
    proofDigest: proofDigest(payment),
    ...more,
  }) as PaymentRecord;

const scope = { assets: [money], publicBaseUrl: 'https://shop.example' };
const carried = (echoed: string | undefined = token, payload: object = payment.payload) => {
  const extensions = { [BUYER_TOKEN]: { info: { token: echoed } } };
  return { kind: 'header', value: encodeProof({ ...payload, extensions } as never) } as const;
};
const asked = {
  ...{ resourceId: 'report', input: { city: 'a' }, callerHeaders: { cookie: 'a' } },
  ...{ proof: carried(), idempotencyKey: undefined },
};
/** What is found of a call in a ledger with one record. */
const found = (more: object = {}, record = recordOf(bought), money = scope) =>
  createFindKnown({ read: async (id) => (id === record.payId ? record : undefined) }, money)({ ...asked, ...more });

describe('the payment of a proof', () => {
  it('with the call and the secret that it was bought with: its record, request and terms', async () => {
    const known = await found();
    assert.ok(known.kind === 'known');
    assert.equal(known.record.payId, payId);
    assert.deepEqual(known.request, { ...request, callerHeaders: { cookie: 'a' } });
    assert.deepEqual(known.agreed, agreed);
    assert.deepEqual([known.token?.text, known.token?.genuineForMs], [token, 0]);
  });

  for (const [what, more] of Object.entries({
    'without the secret': { proof: carried('none') },
    'with the secret of another': { proof: carried(other) },
    'for another input': { input: { city: 'b' } },
    'for other headers of its caller': { callerHeaders: {} },
    'for another resource': { resourceId: 'other' },
  }))
    it(`${what}: its record, and nothing of what was bought`, async () => {
      const known = await found(more);
      assert.deepEqual(known.kind === 'known' && [known.record.payId, known.request], [payId, undefined]);
    });

  it('with a key opens by it alone', async () => {
    const record = recordOf({ ...bought, idempotencyKey: 'key', token: undefined });
    for (const [idempotencyKey, opens] of [
      ['key', true],
      ['other', false],
      [undefined, false],
    ] as const) {
      const known = await found({ idempotencyKey }, record);
      assert.equal(known.kind === 'known' && known.request !== undefined, opens);
    }
  });

  it('that is over has no request, and terms as far as they are in clear', async () => {
    const known = await found({}, recordOf(bought, { state: 'delivered', ...FORGOTTEN }));
    assert.ok(known.kind === 'known');
    assert.deepEqual([known.request?.method, known.request?.path], ['POST', '/']);
    assert.partialDeepStrictEqual(known.agreed.requirements, {
      amount: requirements.amount,
      payTo: requirements.payTo,
    });
  });

  it('that is sealed with another key is known, and its request is not', async () => {
    const sealed = 'sealed:1:none:none';
    const known = await found({}, recordOf(bought, { proof: sealed, backendRequest: sealed }));
    assert.deepEqual(known.kind === 'known' && known.request, undefined);
  });

  it('of the network or asset that the proof accepts is found where these are others by now', async () => {
    for (const change of [{ chainId: 1 }, { asset: freshAddress() }])
      assert.equal((await found({}, recordOf(bought), { ...scope, assets: [{ ...money, ...change }] })).kind, 'known');
  });

  it('is none without a record, and is not asked for where no proof can be read', async () => {
    const read = async () => assert.fail('asked');
    assert.deepEqual(await found({}, recordOf(bought, { payId: 'another' })), { kind: 'none' });
    for (const proof of [{ kind: 'none' }, { kind: 'illegible' }, { kind: 'header', value: 'bm9uZQ==' }] as const)
      assert.deepEqual(await createFindKnown({ read }, scope)({ ...asked, proof }), { kind: 'none' });
  });

  it('of a store that does not answer is an error', async () => {
    const read = () => Promise.reject(new StoreError('gone'));
    await assert.rejects(createFindKnown({ read }, scope)(asked), StoreError);
  });
});
