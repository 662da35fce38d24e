import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { createReplacedOffers } from '../../../src/payments/settlement/accepted-offer.ts';
import {
  createProofVerifier,
  createUnprovenSignatures,
  type UnprovenSignatures,
} from '../../../src/payments/settlement/verifier.ts';
import { prepareRecovery } from '../../../src/payments/x402/evm/account.ts';
import {
  createExaminer,
  type ProvenVerdict,
  proofDigest,
  type Unproven,
} from '../../../src/payments/x402/verify/verify.ts';
import type { FixedPricing } from '../../../src/payments/x402/wire/challenge.ts';
import { type Agreed, compileOffers, type Offer, type Offers } from '../../../src/payments/x402/wire/offers.ts';
import { BUYER_TOKEN, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import type { Proof } from '../../../src/payments/x402/wire/types.ts';
import { authorize, CHECKED_HERE, freshAccount, genuineProof, sign, termsFor } from '../x402/signing.ts';
import { tokensUnder } from './tokens.ts';
import { rest, virtualTime } from './virtual-time.ts';

const { payload, payId } = await genuineProof(freshAccount(), termsFor());
const REFUSED: ProvenVerdict = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature', ofSignature: true };

describe('the budget of unproven signatures', () => {
  let time: ReturnType<typeof virtualTime>;
  let unproven: UnprovenSignatures;
  let asked: { readonly signature: string; readonly answer: (verdict: ProvenVerdict) => void }[];
  beforeEach(() => {
    time = virtualTime();
    unproven = createUnprovenSignatures(time);
    asked = [];
  });
  const proofSigned = (signature: string): Unproven['proof'] => ({
    payId,
    payload: { ...payload, payload: { ...payload.payload, signature } },
    signedBy: 'contract',
  });
  const bring = (signature: string, network = 'a'): ReturnType<UnprovenSignatures['verdictOn']> => {
    const { promise, resolve: answer } = Promise.withResolvers<ProvenVerdict>();
    const prove = (): Promise<ProvenVerdict> => {
      asked.push({ signature, answer });
      return promise;
    };
    return unproven.verdictOn(network, { kind: 'unproven', proof: proofSigned(signature), prove });
  };

  it('one network has two questions at a time, and all together have six', async () => {
    for (let n = 0; n < 10; n += 1) void bring(`0xa${n}`, 'a');
    await rest();
    assert.equal(asked.length, 2);
    for (const network of ['b', 'c', 'd', 'e']) for (let n = 0; n < 2; n += 1) void bring(`0x${network}${n}`, network);
    await rest();
    assert.equal(asked.length, 6);
  });

  it('a call that waits too long, or behind too many, is crowded', async () => {
    const answers: string[] = [];
    for (let n = 0; n < 2 + 32; n += 1) void bring(`0xa${n}`).then(({ kind }) => answers.push(kind));
    await rest();
    assert.equal((await bring('0xff')).kind, 'crowded');
    assert.deepEqual(answers, []);
    await time.pass(3_000);
    assert.deepEqual([answers.length, new Set(answers)], [32, new Set(['crowded'])]);
    assert.equal(unproven.count.crowded, 33);
  });

  it('copies of one proof are one question, whose answer is remembered when it is good', async () => {
    const copies = [bring('0xaa'), bring('0xaa', 'b'), bring('0xaa')];
    await rest();
    assert.equal(asked.length, 1);
    asked[0]?.answer({ kind: 'genuine', proof: proofSigned('0xaa') });
    const kinds = (await Promise.all(copies)).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['genuine', 'genuine', 'genuine']);
    assert.equal((await bring('0xaa')).kind, 'genuine');
    assert.equal(asked.length, 1);
    assert.equal(unproven.count.proven, 1);
  });

  it('a refusal is asked again: the wallet may be deployed since', async () => {
    const first = bring('0xaa');
    await rest();
    asked[0]?.answer(REFUSED);
    assert.equal((await first).kind, 'refused');
    void bring('0xaa');
    await rest();
    assert.equal(asked.length, 2);
  });
});

/** None. */
const blockedPayers: ReadonlySet<string> = new Set();

describe('the proof of a known payment', () => {
  const decoded = { kind: 'decoded', payload, paymentIdentifier: undefined, buyerToken: undefined } as const;
  const agreed = { requirements: {}, resourceUrl: 'url', amount: '1', currency: 'TUSD' } as Agreed;
  const proof: Proof = { payId, payload, signedBy: 'contract' };
  const verdictOn = (record: object, signature?: ProvenVerdict | { kind: 'crowded' }, own = payId) => {
    const checkSignature = async () =>
      signature === undefined
        ? assert.fail('verified again')
        : ({ kind: 'unproven', proof, prove: async () => assert.fail('asked') } as const);
    const unproven = { verdictOn: async () => signature ?? assert.fail('asked') };
    const examine = () => ({ payId: own, refusal: undefined, checkSignature });
    const parts = { unproven, tokens: tokensUnder(), replaced: createReplacedOffers(), blockedPayers };
    const known = { record: { payId, ...record } as PaymentRecord, proof: decoded, agreed };
    return createProofVerifier(examine, parts).verifyKnown(known, 'network');
  };
  const paid = { proofDigest: proofDigest(proof) };
  const another = { proofDigest: 'of another signature' };

  it('that paid was verified then, in whatever network or asset', async () => {
    assert.deepEqual(await verdictOn(paid), { kind: 'genuine', proof });
    const elsewhere = { payId: 'elsewhere', proofDigest: proofDigest({ ...proof, payId: 'elsewhere' }) };
    assert.deepEqual(await verdictOn(elsewhere), { kind: 'genuine', proof: { ...proof, payId: 'elsewhere' } });
  });

  for (const [what, signature, kind] of [
    ['its payer signed', { kind: 'genuine', proof }, 'genuine'],
    ['its payer did not sign', REFUSED, 'refused'],
    ['no answer comes about', { kind: 'unavailable', cause: 0 }, 'unavailable'],
    ['is one of too many', { kind: 'crowded' }, 'crowded'],
    ['a facilitator refuses for another reason', { ...REFUSED, ofSignature: false }, 'unavailable'],
  ] as const)
    it(`with another signature, which ${what}: ${kind}`, async () => {
      assert.equal((await verdictOn(another, signature)).kind, kind);
    });

  it('with another signature, in another network or asset: unavailable, for nothing here verifies it', async () => {
    assert.equal((await verdictOn(another, undefined, 'of this one')).kind, 'unavailable');
  });
});

const x402 = termsFor();
const account = freshAccount();
const { recover } = await prepareRecovery();
const examine = createExaminer({ terms: x402, recover, ...CHECKED_HERE });
const BASE = 'https://shop.example';
/** What the calls buy, SHA-256 hex. */
const BIND = '5e'.repeat(32);

/** The offers of a configuration: prices in display units by resource id. */
function offersFor(
  prices: Readonly<Record<string, string>>,
  nowMs: () => number,
  maxTimeoutSeconds = 120,
  settle?: 'after',
): Offers {
  const resources = Object.entries(prices).map(([id, amount]) => ({
    id,
    name: id,
    description: undefined,
    mimeType: 'application/json',
    backend: { timeoutMs: 10_000 },
    pricing: {
      ...({ type: 'fixed', amount, currency: 'TUSD', units: BigInt(Math.round(Number(amount) * 1e6)) } as const),
      ...(settle === undefined ? {} : { settle }),
    },
  }));
  const config = { merchant: { publicBaseUrl: BASE }, resources, x402: { ...x402, maxTimeoutSeconds } };
  return compileOffers(config, tokensUnder(['one'], nowMs));
}

/** One process: its clock, its memory, and what it makes of a proof. */
function createProcess(
  clock: { nowMs: number },
  secrets: readonly [string, ...string[]] = ['one'],
  examines = examine,
) {
  const now = (): number => clock.nowMs;
  const replaced = createReplacedOffers(now);
  const parts = { unproven: createUnprovenSignatures(), replaced, blockedPayers };
  const verifier = createProofVerifier(examines, { ...parts, tokens: tokensUnder(secrets, now) }, now);
  return {
    replaced,
    async verdictOn(proof: string, offer: Offer) {
      const verdict = await verifier.verify({ kind: 'header', value: proof }, offer, 'network', () => BIND);
      if (verdict.kind !== 'genuine') return verdict.kind === 'refused' ? verdict.reason : verdict.kind;
      const { agreed, refusal, token } = verdict;
      return { paid: agreed.requirements.amount, shown: agreed.amount, refusal, names: (token?.genuineForMs ?? 0) > 0 };
    },
    priceShown: (proof: string, lowest: Offer, bind = BIND) =>
      verifier.priceShown({ kind: 'header', value: proof }, lowest, () => bind),
    /** Whether the call of a proof is settled after the backend, or why it is refused. */
    async orderOf(proof: string, offer: Offer) {
      const verdict = await verifier.verify({ kind: 'header', value: proof }, offer, 'network', () => BIND);
      if (verdict.kind !== 'genuine') return verdict.kind === 'refused' ? verdict.reason : verdict.kind;
      const { agreed, refusal } = verdict;
      const order = agreed.leastSeconds === undefined ? 'before' : 'after';
      return refusal === undefined ? order : `${order}, ${refusal}`;
    },
    /** The payment whose answer a refused proof may still buy. */
    async answerAfter(proof: string, offer: Offer) {
      const verdict = await verifier.verify({ kind: 'header', value: proof }, offer, 'network', () => BIND);
      return verdict.kind === 'refused' ? verdict.answerOf : assert.fail(verdict.kind);
    },
  };
}

/** A proof of a client for an offer, with the token of its 402 unless it echoes none. */
async function proofFor(
  offer: Pick<Offer, 'requirements' | 'resourceUrl' | 'issueToken'>,
  nowMs: number,
  changes: {
    token?: string | undefined;
    value?: string;
    leftSeconds?: number;
    illegible?: true;
    terms?: typeof x402;
  } = {},
) {
  const { requirements } = offer;
  const validBefore = String(Math.floor(nowMs / 1_000) + (changes.leftSeconds ?? 600));
  const value = changes.value ?? requirements.amount;
  const authorization = authorize(account.address, requirements, { validBefore, value });
  const token = 'token' in changes ? changes.token : offer.issueToken(undefined);
  return encodeProof({
    x402Version: 2,
    resource: { url: offer.resourceUrl },
    accepted: requirements,
    payload: {
      signature: changes.illegible ? 'illegible' : await sign(account, authorization, changes.terms ?? x402),
      authorization,
    },
    ...(token === undefined ? {} : { extensions: { [BUYER_TOKEN]: { info: { token } } } }),
  });
}

const of = (offers: Offers, id = 'report'): Offer => offers.get(id) ?? assert.fail(id);

describe('a proof for an offer that was replaced', () => {
  const clock = { nowMs: 0 };
  const at = (): number => clock.nowMs;
  const start = 1_800_000_000_000;
  const before = offersFor({ report: '0.01', dear: '5' }, at);
  const after = offersFor({ report: '0.02', dear: '7' }, at);

  it('is accepted with the token of its 402 by a process that never made that offer, at its price', async () => {
    clock.nowMs = start;
    const proof = await proofFor(of(before), start);
    const other = createProcess(clock);
    assert.deepEqual(await other.verdictOn(proof, of(after)), {
      paid: '10000',
      shown: '0.01',
      refusal: undefined,
      names: true,
    });
  });

  it('is accepted until its 402 ends; then it is none, unless the chain shows that it has paid', async () => {
    clock.nowMs = start;
    const proof = await proofFor(of(before), start);
    const other = createProcess(clock);
    clock.nowMs = start + 120_999;
    assert.equal(Object(await other.verdictOn(proof, of(after))).refusal, undefined);
    clock.nowMs = start + 121_000;
    assert.equal(Object(await other.verdictOn(proof, of(after))).refusal, 'invalid_payment_requirements');
  });

  it('follows the longest time that was offered, not the present one', async () => {
    clock.nowMs = start;
    const long = offersFor({ report: '0.01' }, at, 300);
    const proof = await proofFor(of(long), start);
    clock.nowMs = start + 299_000;
    assert.equal(Object(await createProcess(clock).verdictOn(proof, of(after))).refusal, undefined);
  });

  it('is remembered through several changes, each for its own time, and not as the price of another', async () => {
    clock.nowMs = start;
    const prices = ['0.01', '0.02', '0.03'].map((report) => offersFor({ report, dear: '5' }, at));
    const own = createProcess(clock);
    const [first, second, third] = prices as [Offers, Offers, Offers];
    own.replaced.replace(first, second);
    clock.nowMs = start + 60_000;
    own.replaced.replace(second, third);
    const bare = (offers: Offers) => proofFor(of(offers), start, { token: undefined });
    assert.equal(Object(await own.verdictOn(await bare(first), of(third))).paid, '10000');
    clock.nowMs = start + 121_000;
    assert.equal(await own.verdictOn(await bare(first), of(third)), 'invalid_payment_requirements');
    assert.equal(Object(await own.verdictOn(await bare(second), of(third))).paid, '20000');
    const dear = { ...of(third, 'dear'), requirements: of(second).requirements };
    const cheap = await proofFor(dear, start, { token: undefined });
    assert.equal(await own.verdictOn(cheap, of(third, 'dear')), 'invalid_payment_requirements');
  });
});

describe('who tries to buy below the price', () => {
  const clock = { nowMs: 1_800_000_000_000 };
  const offers = offersFor({ report: '0.01', dear: '5' }, () => clock.nowMs);
  const [cheap, dear] = [of(offers), of(offers, 'dear')];
  const before = of(
    offersFor({ dear: '4' }, () => clock.nowMs),
    'dear',
  );
  const accepting = (offer: Offer, changes: object): Offer => {
    return { ...offer, requirements: { ...offer.requirements, ...changes } };
  };
  const disguised = { ...dear, requirements: cheap.requirements, issueToken: cheap.issueToken };
  const wrong = 'invalid_payment_requirements';
  const rows: readonly (readonly [
    how: string,
    offer: Offer,
    reason: string,
    value?: string | undefined,
    secret?: string,
  ])[] = [
    ['with the token of a cheap resource for a dear one', disguised, wrong],
    ['with a genuine token and an amount of its own choice', accepting(dear, { amount: '1' }), wrong],
    ['with a genuine offer and less', before, 'invalid_exact_evm_payload_authorization_value_mismatch', '1'],
    ['with a token of another key', before, wrong, undefined, 'two'],
    ['with a longer time than was offered', accepting(before, { maxTimeoutSeconds: 3_600 }), wrong],
    ['with another payee than that of this process', accepting(before, { payTo: account.address }), wrong],
    ['with another asset', accepting(before, { asset: account.address }), wrong],
    ['with another network', accepting(before, { network: 'eip155:1' }), 'invalid_network'],
  ];
  for (const [how, offer, reason, value, secret = 'one'] of rows)
    it(`${how} is refused`, async () => {
      const proof = await proofFor(offer, clock.nowMs, value === undefined ? {} : { value });
      assert.equal(await createProcess(clock, [secret]).verdictOn(proof, dear), reason);
    });
});

describe('an offer that is settled after the call', () => {
  const clock = { nowMs: 1_800_000_000_000 };
  const { nowMs } = clock;
  const at = (): number => clock.nowMs;
  const priced = (report: string, settle?: 'after'): Offer => of(offersFor({ report }, at, 120, settle));
  const after = priced('0.01', 'after');
  const before = priced('0.01');
  const upfront = after.upfront ?? assert.fail('no other order');
  const order = async (proof: string, present: Offer) => createProcess(clock).orderOf(proof, present);
  /** For a call of 10 s, and 70 s to settle. */
  const LEAST_SECONDS = 80;

  it('says authorization, and its alternative says upfront; all else of them is the same', () => {
    const { extra } = after.requirements;
    assert.equal(extra.paymentFlow, 'authorization');
    assert.deepEqual(upfront.requirements, { ...after.requirements, extra: { ...extra, paymentFlow: 'upfront' } });
    assert.deepEqual(upfront.requirements, before.requirements);
    const { leastSeconds, resourceUrl, amount, currency } = after;
    assert.deepEqual([leastSeconds, upfront.leastSeconds, upfront.upfront], [LEAST_SECONDS, undefined, undefined]);
    assert.deepEqual([upfront.resourceUrl, upfront.amount, upfront.currency], [resourceUrl, amount, currency]);
    assert.deepEqual([before.leastSeconds, before.upfront], [undefined, undefined]);
  });

  it('has each order’s own challenge', () => {
    for (const [offer, flow] of [
      [after, 'authorization'],
      [upfront, 'upfront'],
    ] as const) {
      const facts = { requestId: 'req', expiresAt: 'then', token: offer.issueToken(undefined) };
      const { accepts } = JSON.parse(offer.challenge.fresh(facts).document);
      assert.equal(accepts[0].extra.paymentFlow, flow);
    }
  });

  it('is bought in the order that the proof accepts; a proof that names none gets that of the offer', async () => {
    assert.equal(await order(await proofFor(after, nowMs), after), 'after');
    assert.equal(await order(await proofFor(upfront, nowMs), after), 'before');
    const { extra: _extra, ...silent } = after.requirements;
    const proof = await proofFor({ ...after, requirements: silent as typeof after.requirements }, nowMs);
    assert.equal(await order(proof, after), 'after');
  });

  it('names another order than the two: refused', async () => {
    const { extra } = after.requirements;
    const requirements = { ...after.requirements, extra: { ...extra, paymentFlow: 'later' } };
    const proof = await proofFor({ ...after, requirements } as Offer, nowMs);
    assert.equal(await order(proof, after), 'invalid_payment_requirements');
  });

  it('needs time for the call and its settlement; upfront needs none of it', async () => {
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    const proof = (offer: Offer, leftSeconds: number) => proofFor(offer, nowMs, { leftSeconds });
    assert.equal(await order(await proof(after, LEAST_SECONDS), after), 'after');
    assert.equal(await order(await proof(after, LEAST_SECONDS - 1), after), `after, ${reason}`);
    assert.equal(await order(await proof(upfront, LEAST_SECONDS - 1), after), 'before');
    assert.equal(await order(await proof(upfront, 6), after), 'before');
  });

  it('with too little time is for the settlement, which asks the chain: it may have paid before', async () => {
    const process = createProcess(clock);
    for (const leftSeconds of [LEAST_SECONDS - 1, 6, 0, -3_600])
      assert.match(await process.orderOf(await proofFor(after, nowMs, { leftSeconds }), after), /^after, /);
    // Neither is one that lives too long: it cannot have been made for this offer.
    const long = await proofFor(after, nowMs, { leftSeconds: 120 + 601 });
    assert.equal(await process.orderOf(long, after), 'invalid_exact_evm_payload_authorization_valid_before');
  });

  it('made after by a reload: proofs that accepted it before are settled before', async () => {
    assert.equal(await order(await proofFor(before, nowMs), after), 'before');
  });

  it('made before by a reload: proofs that accepted it after are refused', async () => {
    assert.equal(await order(await proofFor(after, nowMs), before), 'invalid_payment_requirements');
    assert.equal(await order(await proofFor(upfront, nowMs), before), 'before');
  });

  it('made before by a reload, and after again: as if nothing had been', async () => {
    const process = createProcess(clock);
    const offers = (settle?: 'after'): Offers => offersFor({ report: '0.01' }, at, 120, settle);
    const [first, second, third] = [offers('after'), offers(), offers('after')] as const;
    process.replaced.replace(first, second);
    process.replaced.replace(second, third);
    assert.equal(await process.orderOf(await proofFor(after, nowMs), of(third)), 'after');
    assert.equal(await process.orderOf(await proofFor(upfront, nowMs), of(third)), 'before');
  });

  it('at another price since: the order that was accepted, at the price that was offered', async () => {
    const dearer = priced('0.02', 'after');
    const process = createProcess(clock);
    assert.equal(await process.orderOf(await proofFor(after, nowMs), dearer), 'after');
    assert.equal(await process.orderOf(await proofFor(upfront, nowMs), dearer), 'before');
    assert.equal(await process.orderOf(await proofFor(before, nowMs), dearer), 'before');
    assert.partialDeepStrictEqual(await process.verdictOn(await proofFor(upfront, nowMs), dearer), { paid: '10000' });
    assert.equal(await process.orderOf(await proofFor(after, nowMs), priced('0.02')), 'invalid_payment_requirements');
  });
});

describe('a refused proof whose token names an answer that waits', () => {
  const clock = { nowMs: 1_800_000_000_000 };
  const { nowMs } = clock;
  const offerAt = (price: string): Offer => of(offersFor({ report: price }, () => clock.nowMs, 120, 'after'));
  const offer = offerAt('0.01');
  const EARLIER = 'ab'.repeat(32);
  const token = offer.issueToken(undefined, EARLIER);
  const answerAfter = (proof: string, present = offer) => createProcess(clock).answerAfter(proof, present);
  const withTerms = (changes: object) => ({ ...offer, requirements: { ...offer.requirements, ...changes } }) as Offer;

  const refused: readonly (readonly [what: string, accepts: Offer, changes: object])[] = [
    ['too low', offer, { value: '1' }],
    ['past its window', offer, { leftSeconds: 120 + 601 }],
    ['for terms of its own', withTerms({ amount: '1' }), {}],
    ['for another scheme', withTerms({ scheme: 'upto' }), {}],
    ['illegible', offer, { illegible: true }],
  ];
  for (const [what, accepts, changes] of refused)
    it(`${what}: the answer waits on`, async () => {
      assert.equal(await answerAfter(await proofFor(accepts, nowMs, { token, ...changes })), EARLIER);
    });

  it('of another version of x402: the answer waits on', async () => {
    const document = { x402Version: 1, extensions: { [BUYER_TOKEN]: { info: { token } } } };
    assert.equal(await answerAfter(Buffer.from(JSON.stringify(document)).toString('base64')), EARLIER);
  });

  it('of an offer that was replaced: the answer waits on', async () => {
    const proof = await proofFor(offer, nowMs, { token, value: '1' });
    assert.equal(await answerAfter(proof, offerAt('0.02')), EARLIER);
  });

  it('without a genuine token none is named', async () => {
    const plain = offer.issueToken(undefined);
    for (const other of [undefined, plain, `${plain}${token.slice(plain.length)}`])
      assert.equal(await answerAfter(await proofFor(offer, nowMs, { token: other, value: '1' })), undefined);
  });
});

describe('a proof for one of several offers', () => {
  const nowMs = 1_800_000_000_000;
  const fine = { ...termsFor(undefined, 2), assetDecimals: 18 };
  const euro = { ...termsFor(undefined, 3), assetDecimals: 2 };
  const terms = [x402, fine, euro];
  type Others = Pick<FixedPricing, 'others' | 'ended' | 'by'>;
  const finePrice = (units: bigint) => ({ amount: '', currency: 'TUSD', units: units * 10n ** 12n, entry: 1 });
  const soldFor = (units: bigint, others: Others): Offers => {
    const pricing = { type: 'fixed', amount: '', currency: 'TUSD', units, ...others } as const;
    const report = { id: 'report', name: 'report', description: undefined, mimeType: 'application/json' };
    const resources = [{ ...report, backend: { timeoutMs: 10_000 }, pricing }];
    const config = { merchant: { publicBaseUrl: BASE }, resources, x402, alternatives: [fine, euro] };
    return compileOffers(
      config,
      tokensUnder(['one'], () => nowMs),
    );
  };
  /** A dollar on two chains of which one has 18 decimals, and a euro of two on a third. */
  const offersAt = (dollars: bigint, euros: bigint): Offers =>
    soldFor(dollars, { others: [finePrice(dollars), { amount: '', currency: 'TEUR', units: euros, entry: 2 }] });
  const [before, after] = [offersAt(10_000n, 90n), offersAt(20_000n, 80n)];
  const open = () =>
    createProcess({ nowMs }, ['one'], (candidate) => {
      const paidIn = terms.find(({ network }) => network === candidate.offer.network) ?? assert.fail();
      return createExaminer({ terms: paidIn, recover, ...CHECKED_HERE })(candidate);
    });
  interface Signing {
    readonly offer?: Offer;
    readonly token?: string | undefined;
  }
  /** A proof for an offer of before unless `offer` is given, with changes of what it accepts. */
  const proofIn = (index: number, changes: object = {}, { offer = of(before), ...token }: Signing = {}) => {
    const { requirements } = [offer, ...offer.others][index] ?? assert.fail('no such offer');
    const accepted = { ...offer, requirements: { ...requirements, ...changes } };
    return proofFor(accepted, nowMs, { terms: terms[index] ?? assert.fail(), ...token });
  };
  const paidFor = async (proof: string, present: Offers, process = open()) => {
    const verdict = await process.verdictOn(proof, of(present));
    return typeof verdict === 'string' ? verdict : verdict.paid;
  };
  const wrong = 'invalid_payment_requirements';

  it('that was replaced in another currency is known to the process that made it alone', async () => {
    assert.equal(await paidFor(await proofIn(2), after), wrong);
    const process = open();
    process.replaced.replace(before, after);
    assert.equal(await paidFor(await proofIn(2, {}, { token: undefined }), after, process), '90');
  });

  it('is never paid in one asset at the number of another, and never rounded', async () => {
    for (const amount of ['10000', '9999999999999999'])
      assert.equal(await paidFor(await proofIn(1, { amount }), after), wrong);
    assert.equal(await paidFor(await proofIn(2, { amount: '10000' }), after), wrong);
  });

  it('in an asset that is offered no more is known to the process that offered it', async () => {
    const one = soldFor(10_000n, {});
    assert.equal(await paidFor(await proofIn(1), one), 'invalid_network');
    const process = open();
    process.replaced.replace(before, one);
    assert.equal(await paidFor(await proofIn(1), one, process), '10000000000000000');
  });

  it('at a quoted price is rounded up in each asset, and shows it for its own input alone', async () => {
    const by = { kind: 'quote', method: 'POST', path: '/price', min: '0.01', max: '2' } as const;
    const others = [finePrice(10_000n), { amount: '', currency: 'TUSD', units: 1n, entry: 2 }];
    const lowest = of(soldFor(10_000n, { others, by }));
    const at = (units: bigint): Offer => lowest.byInput?.at(units) ?? assert.fail();
    assert.equal(at(510_001n).others[1]?.requirements.amount, '52');
    const offer = at(510_000n);
    for (const [index, amount] of ['510000', '510000000000000000', '51'].entries()) {
      const proof = await proofIn(index, {}, { offer, token: offer.issueToken(BIND) });
      const shown = [BIND, 'a1'.repeat(32)].map((bind) => open().priceShown(proof, lowest, bind));
      assert.deepEqual(shown, [510_000n, undefined]);
      assert.equal(await paidFor(proof, new Map([['report', offer]])), amount);
    }
    const unbound = await proofIn(0, {}, { offer, token: offer.issueToken(undefined) });
    assert.equal(await paidFor(unbound, new Map([['report', at(600_000n)]])), wrong);
  });
});
