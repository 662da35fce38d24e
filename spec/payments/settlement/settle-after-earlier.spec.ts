import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { RECORD_RETENTION_MS } from '../../../src/payments/ledger/transitions.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { sha256 } from '../ledger/samples.ts';
import { ANSWER } from './scripted-work.ts';
import { freshTerms, worldOfEachTest } from './world.ts';

const NO_MONEY = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' } as const;
const OTHER_ANSWER = { ...ANSWER, body: new Uint8Array(Buffer.from('{"report":2}')) };

describe('the answer of a payment that came to nothing', () => {
  const world = worldOfEachTest();
  const { settleAfter, record, types, later } = world;
  let answerOf: string;

  beforeEach(async () => {
    const { settle } = world.peer.script;
    world.peer.script.settle = async () => NO_MONEY;
    const result = await settleAfter();
    assert.equal(result.kind, 'refused');
    answerOf = world.terms.payId;
    world.terms = { ...world.terms, payId: freshTerms().payId, nonce: '0xnext' };
    world.peer.script.settle = settle;
    world.peer.asked.length = 0;
    world.backend.script.answer = async () => ({ kind: 'answer', answer: OTHER_ANSWER });
  });
  const worked = () => world.backend.called.length - 1;

  it('is bought by the next proof for the same: without another call', async () => {
    const result = await settleAfter({ work: { answerOf } });
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, worked()], [ANSWER, 0]);
    assert.deepEqual(world.peer.names(), ['verify', 'settle']);
    assert.partialDeepStrictEqual(await record(), { state: 'settled', answered: 200, reason: 'answer_kept' });
    assert.equal((await types()).filter((type) => type === 'backend.called').length, 1);
  });

  it('holds no connection, and needs no backend', async () => {
    world.reachable = false;
    assert.ok((await settleAfter({ work: { answerOf } })).kind === 'paid');
    assert.equal(world.connections, 0);
  });

  it('is sold once: the next proof with the same token pays for another call', async () => {
    assert.ok((await settleAfter({ work: { answerOf } })).kind === 'paid');
    world.terms = { ...world.terms, payId: freshTerms().payId };
    const second = await settleAfter({ work: { answerOf } });
    assert.ok(second.kind === 'paid');
    assert.deepEqual([second.kept, worked()], [OTHER_ANSWER, 1]);
  });

  it('is sold once to two proofs at a time', async () => {
    const other = { ...world.terms, payId: freshTerms().payId };
    const both = await Promise.all([
      settleAfter({ work: { answerOf } }),
      settleAfter({ terms: other, work: { answerOf } }),
    ]);
    assert.ok(both.every(({ kind }) => kind === 'paid'));
    assert.equal(worked(), 1);
  });

  it('is not sold by the old token to a third proof when the second came to nothing and passed it on', async () => {
    const { settle } = world.peer.script;
    world.peer.script.settle = async () => NO_MONEY;
    await settleAfter({ work: { answerOf } });
    const passedOn = world.terms.payId;
    world.peer.script.settle = settle;
    for (const named of [passedOn, answerOf]) {
      world.terms = { ...world.terms, payId: freshTerms().payId };
      assert.equal((await settleAfter({ work: { answerOf: named } })).kind, 'paid');
    }
    assert.equal(worked(), 1);
  });

  it('takes no place in the budget, and gives back that of the payment that came to nothing', async () => {
    world.unpaidLimits = { ...world.unpaidLimits, perResource: 1 };
    assert.equal(world.unpaidWork.exhausted(world.terms.resourceId, 'network'), true);
    assert.equal((await settleAfter({ work: { answerOf } })).kind, 'paid');
    assert.equal(world.unpaidWork.exhausted(world.terms.resourceId, 'network'), false);
  });

  it('is kept with the new payment for as long as that', async () => {
    const result = await settleAfter({ work: { answerOf } });
    assert.ok(result.kind === 'paid');
    world.clock = world.terms.validBefore * 1_000 + RECORD_RETENTION_MS - 1;
    assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
  });

  const others = [
    ['another payer', { payer: `0x${'9'.repeat(40)}` }],
    ['another purchase', { bind: sha256('another input') }],
  ] as const;
  for (const [who, terms] of others)
    it(`is not for ${who}: the backend is called`, async () => {
      const result = await settleAfter({ terms: { ...world.terms, ...terms }, work: { answerOf } });
      assert.ok(result.kind === 'paid');
      assert.deepEqual([result.kept, worked()], [OTHER_ANSWER, 1]);
    });

  it('is not for a call that does not name it, nor for one that names an unknown payment', async () => {
    assert.equal((await settleAfter()).kind, 'paid');
    world.terms = { ...world.terms, payId: freshTerms().payId };
    assert.equal((await settleAfter({ work: { answerOf: sha256('unknown') } })).kind, 'paid');
    assert.equal(worked(), 2);
  });

  it('is not that of a payment that is paid, or not decided: those belong to their proofs', async () => {
    const paid = await settleAfter();
    assert.equal(paid.kind, 'paid');
    const other = { ...world.terms, payId: freshTerms().payId };
    assert.equal((await settleAfter({ terms: other, work: { answerOf: world.terms.payId } })).kind, 'paid');
    assert.equal(worked(), 2);
  });

  it('no longer kept: the backend is called', async () => {
    later(RECORD_RETENTION_MS + 120_000);
    world.terms = { ...world.terms, validBefore: world.clock / 1_000 + 120 };
    const result = await settleAfter({ work: { answerOf } });
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, worked()], [OTHER_ANSWER, 1]);
  });

  it('a payment that comes to nothing again passes it on', async () => {
    world.peer.script.settle = async () => NO_MONEY;
    const again = await settleAfter({ work: { answerOf } });
    assert.ok(again.kind === 'refused');
    assert.equal(again.owed.answerOf, world.terms.payId);
    assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
  });

  it('waits on when the next proof is refused before anything is sent', async () => {
    world.peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
    const again = await settleAfter({ work: { answerOf } });
    assert.ok(again.kind === 'refused');
    assert.deepEqual([again.owed.answerOf, await record()], [answerOf, undefined]);
    const stranger = { ...world.terms, bind: sha256('another input') };
    const other = await settleAfter({ terms: stranger, work: { answerOf } });
    assert.ok(other.kind === 'refused');
    assert.equal(other.owed.answerOf, undefined);
  });

  it('waits on when a proof that its provider refused comes again', async () => {
    world.peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
    const proof = sha256('the proof');
    for (const _ of [1, 2]) {
      const again = await settleAfter({ proof, work: { answerOf } });
      assert.ok(again.kind === 'refused');
      assert.equal(again.owed.answerOf, answerOf);
    }
    assert.deepEqual(world.peer.names(), ['verify'], 'the second time it is not asked about');
  });

  it('a store that is silent about it is an error of the call: nothing was asked or sent', async () => {
    await assert.rejects(settleAfter({ work: { answerOf } }, world.broken({ kept: world.silent })), StoreError);
    assert.deepEqual([world.peer.names(), worked(), world.held.size], [[], 0, 0]);
  });
});
