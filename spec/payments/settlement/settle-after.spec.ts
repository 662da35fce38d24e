import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { RECORD_RETENTION_MS } from '../../../src/payments/ledger/table.ts';
import { LEASE_MS } from '../../../src/payments/settlement/attempt.ts';
import { createUnpaidWork } from '../../../src/payments/settlement/places.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { sha256 } from '../ledger/samples.ts';
import { ANSWER, BROKEN, freshTerms, PAID, refusalIn, SPENT, TOO_LARGE, worldOfEachTest } from './world.ts';

const NO_MONEY = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;

describe('a payment that is settled after the backend answered', () => {
  const world = worldOfEachTest();
  const { settleAfter, record, state, types, receipts, broken } = world;

  /** A ledger that reports each change of state, with what is kept in the same write. */
  const reporting = (steps: string[]): PaymentLedger =>
    broken({
      async advance(command) {
        const advanced = await world.ledger.advance(command);
        steps.push(command.keeping === undefined ? command.to : `${command.to} with the answer`);
        return advanced;
      },
    });

  it('is verified, worked for, kept in the write that begins the settlement, and only then settled', async () => {
    const steps: string[] = [];
    world.peer.script.verify = async () => {
      steps.push(`verify, ${await state()}`);
      return { kind: 'valid' };
    };
    world.backend.script.answer = async () => {
      steps.push(`the backend, ${await state()}`);
      return { kind: 'answer', answer: ANSWER };
    };
    world.peer.script.settle = async () => {
      steps.push(`settle, ${await state()}`);
      return PAID;
    };
    const result = await settleAfter({}, reporting(steps));
    assert.deepEqual(steps, [
      'verify, reserved',
      'the backend, reserved',
      'settling with the answer',
      'settle, settling',
      'settled',
    ]);
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, result.held, world.connections], [ANSWER, undefined, 0]);
    assert.deepEqual(world.backend.called, [world.terms.payId]);
  });

  it('has its events once and in their order, and a receipt that says that the answer waits', async () => {
    await settleAfter();
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'backend.called', 'payment.settled']);
    const [receipt, ...others] = await receipts();
    assert.equal(others.length, 0);
    assert.partialDeepStrictEqual(receipt, { backendStatus: 200, delivered: false, metadata: { answerKept: true } });
    assert.partialDeepStrictEqual(await record(), { settle: 'after', answered: 200, reason: 'answer_kept' });
  });

  it('leaves no event but those of the call in the store before the answer is kept', async () => {
    let before: readonly string[] = [];
    world.backend.script.answer = async () => {
      before = await types();
      return { kind: 'answer', answer: ANSWER };
    };
    await settleAfter();
    assert.deepEqual(before, []);
  });

  it('keeps the answer until the record is forgotten, also of a proof that is never brought again', async () => {
    world.closesWhileItWorks();
    assert.equal((await settleAfter()).kind, 'gate_closed');
    const end = world.terms.validBefore * 1_000 + RECORD_RETENTION_MS;
    world.clock = end - 1;
    assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
    world.clock = end;
    assert.equal(await world.ledger.kept(world.terms.payId), undefined);
  });

  it('is not called for where the rail refuses: 402 as of every other call, and no record', async () => {
    world.peer.script.verify = async () => NO_MONEY;
    assert.deepEqual(refusalIn(await settleAfter()), {
      reason: 'insufficient_funds',
      phase: 'verify',
      recorded: false,
    });
    assert.deepEqual([world.backend.called, await record(), world.unpaid], [[], undefined, []]);
  });

  for (const verdict of [NO_MONEY, { kind: 'unavailable', cause: 'down' }] as const)
    it(`${verdict.kind} for a reservation that another process took over meanwhile: in flight, never a 402`, async () => {
      world.peer.script.verify = async () => {
        world.peer.script.verify = async () => ({ kind: 'valid' });
        world.later(LEASE_MS + 1);
        world.unpaidWork = createUnpaidWork(() => world.unpaidLimits);
        assert.equal((await settleAfter()).kind, 'paid');
        return verdict;
      };
      assert.equal((await settleAfter()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

  it('spent, as the rail says: the chain is asked, and the backend is not', async () => {
    world.peer.script.verify = async () => SPENT;
    await settleAfter();
    assert.deepEqual([world.peer.names(), world.backend.called], [['verify', 'reconcile'], []]);
  });

  it('is not called for without a connection to the backend', async () => {
    world.reachable = false;
    assert.partialDeepStrictEqual(await settleAfter(), { kind: 'postponed', reason: 'backend_unreachable' });
    assert.deepEqual([world.backend.called, await record()], [[], undefined]);
  });

  it('a proof that is refused for too little time asks the chain, not the backend', async () => {
    const refusal = 'invalid_exact_evm_payload_authorization_valid_before';
    assert.deepEqual(refusalIn(await settleAfter({ refusal })), { reason: refusal, phase: 'verify', recorded: false });
    assert.deepEqual([world.peer.names(), world.backend.called], [['reconcile'], []]);
  });

  // A copy of it that came meanwhile may have been told to pay anew.
  it('a call that waited since its checks begins with as much time left as they ask for, and not with less', async () => {
    world.later(41_000);
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    assert.deepEqual(refusalIn(await settleAfter()), { reason, phase: 'verify', recorded: false });
    assert.deepEqual([world.peer.names(), world.backend.called], [['reconcile'], []]);
    world.later(-1_000);
    assert.equal((await settleAfter()).kind, 'paid');
  });
});

describe('a backend that fails before the money', () => {
  const world = worldOfEachTest();
  const { settleAfter, record, types, receipts } = world;

  it('costs its buyer nothing: no record, no receipt, and the same proof begins anew; it is unpaid work', async () => {
    world.backend.script.answer = async () => BROKEN;
    assert.deepEqual(await settleAfter(), { kind: 'unworked', failure: { status: 500, requestWritten: true } });
    assert.deepEqual([await record(), await types(), await receipts(), world.held.size], [undefined, [], [], 0]);
    assert.deepEqual([world.peer.names(), world.connections], [['verify'], 0]);
    const { payId, resourceId, payer } = world.terms;
    assert.deepEqual(world.unpaid, [{ payId, resourceId, payer, reason: 'backend_5xx' }]);
    assert.partialDeepStrictEqual(await world.unpaidWork.failed(10), [{ replayKey: payId, backendStatus: 500 }]);
    world.backend.script.answer = async () => ({ kind: 'answer', answer: ANSWER });
    assert.equal((await settleAfter()).kind, 'paid');
    assert.equal(world.backend.called.length, 2);
  });

  it('with an answer that is too large: nothing is taken, and the operator learns that it worked in vain', async () => {
    world.backend.script.answer = async () => TOO_LARGE;
    assert.partialDeepStrictEqual(await settleAfter(), {
      kind: 'unworked',
      failure: { reason: 'response_too_large' },
    });
    const { payId, resourceId, payer } = world.terms;
    assert.deepEqual(world.unpaid, [{ payId, resourceId, payer, reason: 'response_too_large' }]);
    assert.deepEqual([await record(), world.peer.names()], [undefined, ['verify']]);
  });

  it('gives its place back where it certainly has no request, and keeps it otherwise', async () => {
    world.unpaidLimits = { ...world.unpaidLimits, perResource: 2 };
    const failure = { status: 0, reason: 'transport', requestWritten: false };
    world.backend.script.answer = async () => ({ kind: 'failed', failure });
    await settleAfter();
    await settleAfter();
    for (const failed of [BROKEN, TOO_LARGE]) {
      world.backend.script.answer = async () => failed;
      assert.equal((await settleAfter()).kind, 'unworked');
    }
    assert.deepEqual(refusalIn(await settleAfter()), {
      reason: 'invalid_payment_requirements',
      phase: 'verify',
      recorded: false,
    });
    assert.equal(world.backend.called.length, 4);
  });

  it('that throws a bug takes nothing either', async () => {
    world.backend.script.answer = () => Promise.reject(new Error('bug'));
    await assert.rejects(settleAfter(), /bug/);
    assert.deepEqual([world.peer.names(), await receipts(), world.held.size], [['verify'], [], 0]);
  });
});

describe('a buyer who is gone, or a gate that closes, where the backend works first', () => {
  const world = worldOfEachTest();
  const { settleAfter, record, state } = world;
  let leaving: AbortController;
  beforeEach(() => {
    leaving = new AbortController();
  });
  const leaves = (): void => leaving.abort();
  const closes = (): void => {
    world.gateOpen = false;
  };

  const ends = [
    ['leaves', leaves, 'gone'],
    ['closes', closes, 'gate_closed'],
  ] as const;
  for (const [how, ending, kind] of ends) {
    it(`${how} during the verification: nothing is worked, and nothing stays`, async () => {
      world.peer.script.verify = async () => {
        ending();
        return { kind: 'valid' };
      };
      assert.equal((await settleAfter({ left: leaving.signal })).kind, kind);
      assert.deepEqual([world.backend.called, await record(), world.connections], [[], undefined, 0]);
    });

    it(`${how} while the connection is made: nothing is worked, and it is given back`, async () => {
      const reserveBackend = () => {
        ending();
        return world.reserveBackend();
      };
      assert.equal((await settleAfter({ left: leaving.signal, reserveBackend })).kind, kind);
      assert.deepEqual([world.backend.called, await record(), world.connections], [[], undefined, 0]);
    });

    it(`${how} while the backend works: nothing is paid, and the same proof pays for what is kept`, async () => {
      world.backend.script.answer = async () => {
        ending();
        return { kind: 'answer', answer: ANSWER };
      };
      assert.equal((await settleAfter({ left: leaving.signal })).kind, kind);
      assert.deepEqual([await state(), world.peer.names(), world.held.size], ['worked', ['verify'], 0]);
      assert.partialDeepStrictEqual(await record(), { leaseUntil: 0, answered: 200 });
      world.gateOpen = true;
      const result = await settleAfter();
      assert.ok(result.kind === 'paid');
      assert.deepEqual([result.kept, world.backend.called.length], [ANSWER, 1]);
      assert.deepEqual(world.peer.names(), ['verify', 'verify', 'settle']);
      assert.deepEqual(world.unpaid, []);
    });
  }

  it('closes after the settlement was begun: uncertain, and nothing was sent', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      if (command.to === 'settling') world.gateOpen = false;
      return world.ledger.advance(command);
    };
    assert.equal((await settleAfter({}, world.broken({ advance }))).kind, 'uncertain');
    assert.deepEqual([await state(), world.peer.names()], ['settling', ['verify']]);
  });
});

describe('the store while the answer is kept', () => {
  const world = worldOfEachTest();
  const { settleAfter, requestWith, later, record, state, broken } = world;
  /** A ledger whose writes that bring an answer are made so. */
  const atAnswer = (write: PaymentLedger['advance']): PaymentLedger =>
    broken({ advance: (command) => (command.keeping === undefined ? world.ledger.advance(command) : write(command)) });
  const standsSilently: PaymentLedger['advance'] = async (command) => {
    await world.ledger.advance(command);
    return world.silent();
  };
  const open = (): void => {
    world.gateOpen = true;
    world.backend.script.answer = async () => ({ kind: 'answer', answer: ANSWER });
    later(LEASE_MS + 1);
  };

  const writes = [
    ['with the settlement', () => undefined],
    ['alone', world.closesWhileItWorks],
  ] as const;
  for (const [how, begin] of writes)
    it(`${how}, is silent: the call fails, nothing is sent, and the same proof begins anew`, async () => {
      begin();
      await assert.rejects(settleAfter({}, atAnswer(world.away)), StoreError);
      assert.deepEqual([world.peer.names(), world.held.size, world.connections], [['verify'], 0, 0]);
      assert.equal(await state(), 'reserved');
      const reasons = world.unpaid.map(({ reason }) => reason);
      assert.deepEqual(reasons, ['storage_error']);
      open();
      assert.equal((await settleAfter()).kind, 'paid');
      assert.equal(world.backend.called.length, 2);
    });

  it('alone, is silent, and the write stands all the same: the next attempt pays for what is kept', async () => {
    world.closesWhileItWorks();
    await assert.rejects(settleAfter({}, atAnswer(standsSilently)), StoreError);
    assert.deepEqual([await state(), world.peer.names()], ['worked', ['verify']]);
    open();
    assert.equal((await settleAfter()).kind, 'paid');
    assert.equal(world.backend.called.length, 1);
  });

  it('with the settlement, is silent, and the write stands: uncertain, and the next attempt pays for what is kept', async () => {
    assert.equal((await settleAfter({}, atAnswer(standsSilently))).kind, 'uncertain');
    assert.deepEqual([await state(), world.peer.names(), world.unpaid], ['settling', ['verify'], []]);
    world.peer.script.reconcile = async () => ({ kind: 'open' });
    open();
    assert.equal((await settleAfter()).kind, 'paid');
    assert.equal(world.backend.called.length, 1);
  });

  it('loses one reply: the repeated write changes nothing twice', async () => {
    let lost = 0;
    const ledger = atAnswer(async (command) => {
      const advanced = await world.ledger.advance(command);
      if (lost > 0) return advanced;
      lost += 1;
      return world.silent();
    });
    assert.equal((await settleAfter({}, ledger)).kind, 'paid');
    assert.equal(await world.countOf('backend.called'), 1);
  });

  it('gave the record to an attempt of another process meanwhile: that one decides', async () => {
    world.backend.script.answer = async () => {
      world.backend.script.answer = async () => ({ kind: 'answer', answer: ANSWER });
      later(LEASE_MS + 1);
      world.unpaidWork = createUnpaidWork(() => world.unpaidLimits);
      assert.equal((await settleAfter()).kind, 'paid');
      return { kind: 'answer', answer: ANSWER };
    };
    assert.equal((await settleAfter()).kind, 'in_flight');
    assert.deepEqual([await state(), world.peer.names()], ['settled', ['verify', 'verify', 'settle']]);
  });

  it('is silent when the settlement of a kept answer begins: the call fails, and the answer waits on', async () => {
    world.closesWhileItWorks();
    await settleAfter();
    open();
    await assert.rejects(settleAfter({}, world.brokenAt('settling', world.away)), StoreError);
    assert.deepEqual([await state(), world.peer.names(), world.unpaid], ['worked', ['verify', 'verify'], []]);
  });

  it('keeps the events of the call for its next write', async () => {
    const { journal } = requestWith();
    await assert.rejects(settleAfter({ journal }, atAnswer(world.away)), StoreError);
    assert.deepEqual(
      journal.take().map(({ type }) => type),
      ['resource.requested', 'payment.verified', 'backend.called'],
    );
  });

  const orders = [
    ['after', () => world.settleOnce()],
    [undefined, () => settleAfter()],
  ] as const;
  for (const [settle, call] of orders)
    it(`has a reservation that is to be settled ${settle ?? 'before'}, and the call is not: it begins anew`, async () => {
      const terms = { ...world.terms, ...(settle === undefined ? {} : { settle }) };
      await world.ledger.reserve({ terms, owner: 'dead', leaseMs: 1 });
      later(2);
      assert.equal((await call()).kind, 'in_flight');
      assert.deepEqual([await record(), world.backend.called], [undefined, []]);
      assert.ok(!world.peer.names().includes('settle'));
      const result = await call();
      assert.ok(result.kind === 'paid');
      assert.equal(result.record.settle, settle === 'after' ? undefined : 'after');
    });
});

const UNSENT = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' } as const;
const OTHER_ANSWER = { ...ANSWER, body: new Uint8Array(Buffer.from('{"report":2}')) };

describe('the answer of a payment that came to nothing', () => {
  const world = worldOfEachTest();
  const { settleAfter, record, types, later } = world;
  let answerOf: string;

  beforeEach(async () => {
    const { settle } = world.peer.script;
    world.peer.script.settle = async () => UNSENT;
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
    world.peer.script.settle = async () => UNSENT;
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

  it('asks the chain where the budget is spent: the payment may have been lost', async () => {
    world.unpaidLimits = { ...world.unpaidLimits, perResource: 1 };
    world.peer.script.reconcile = async () => PAID;
    world.terms = { ...world.terms, payId: freshTerms().payId };
    const result = await settleAfter({ work: { answerOf: undefined } });
    assert.deepEqual([result.kind, worked()], ['paid', 0]);
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
    world.peer.script.settle = async () => UNSENT;
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
