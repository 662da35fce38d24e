import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { createReplacedOffers } from '../../../src/payments/settlement/accepted-offer.ts';
import {
  createProofVerifier,
  createUnprovenSignatures,
  type UnprovenSignatures,
} from '../../../src/payments/settlement/verifier.ts';
import { type ProvenVerdict, proofDigest, type Unproven } from '../../../src/payments/x402/verify/verify.ts';
import type { Agreed } from '../../../src/payments/x402/wire/offers.ts';
import type { Proof } from '../../../src/payments/x402/wire/types.ts';
import { freshAccount, genuineProof, termsFor } from '../x402/signing.ts';
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

  it('a network that floods does not delay another one', async () => {
    for (let n = 0; n < 40; n += 1) void bring(`0xa${n}`, 'a');
    const other = bring('0xb', 'b');
    await rest();
    const question = asked.find(({ signature }) => signature === '0xb') ?? assert.fail('not asked');
    question.answer({ kind: 'genuine', proof: proofSigned('0xb') });
    assert.equal((await other).kind, 'genuine');
  });

  it('copies of one proof are one question, whose answer is remembered when it is good', async () => {
    const copies = [bring('0xaa'), bring('0xaa', 'b'), bring('0xaa')];
    await rest();
    assert.equal(asked.length, 1);
    asked[0]?.answer({ kind: 'genuine', proof: proofSigned('0xaa') });
    assert.deepEqual(
      (await Promise.all(copies)).map(({ kind }) => kind),
      ['genuine', 'genuine', 'genuine'],
    );
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
    const parts = { unproven, tokens: tokensUnder(), replaced: createReplacedOffers(), assetDecimals: 6 };
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
