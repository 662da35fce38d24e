import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { RailVerdict, Reading } from '../../../src/payments/rail.ts';
import { createUnpaidWork, PAYER_SETTLEMENTS, SLOT_WAIT_MS } from '../../../src/payments/settlement/places.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { claimOf, mandateText } from '../../mandates/claims.ts';
import { sha256 } from '../ledger/samples.ts';
import { reconcilerBench } from './reconciler-bench.ts';
import { rest, virtualTime } from './virtual-time.ts';
import { ANSWER, EXPIRED, freshTerms, HASH, NOON_MS, PAID, refusalIn, SPENT, worldOfEachTest } from './world.ts';

const TOKEN = sha256('the token of the buyer');
const OFFLINE = { kind: 'unavailable', cause: 'cut' } as const;
const NO_GAS = { kind: 'unfunded', cause: 'no gas' } as const;
const NO_MONEY = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;
const OPEN = { kind: 'open' } as const;
const SILENT = { kind: 'unknown', cause: 'cut' } as const;
const SENDING_REFUSED = { kind: 'refused', reason: 'invalid_transaction_state', evidence: 'elsewhere' } as const;

/** A settlement of each test whose gateway closed while the backend worked. */
function workedOfEachTest() {
  const world = worldOfEachTest();
  beforeEach(async () => {
    world.terms = { ...world.terms, tokenDigest: TOKEN };
    world.closesWhileItWorks();
    await world.settleAfter();
    world.gateOpen = true;
    world.backend.script.answer = async () => ({ kind: 'answer', answer: ANSWER });
    world.peer.asked.length = 0;
    assert.equal(await world.state(), 'worked');
  });
  return world;
}

describe('an answer that is kept and not paid for', () => {
  const world = workedOfEachTest();
  const { settleAfter, settleOnce, record, state, types } = world;

  it('is paid for by the same proof, under another owner: verified again, and not worked again', async () => {
    const before = await record();
    const result = await settleAfter();
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, result.held, world.backend.called.length], [ANSWER, undefined, 1]);
    assert.deepEqual(world.peer.names(), ['verify', 'settle']);
    assert.notEqual((await record())?.owner, before?.owner);
    assert.equal(await world.countOf('payment.verified'), 1);
    assert.deepEqual((await types()).slice(-1), ['payment.settled']);
  });

  it('needs no backend', async () => {
    world.reachable = false;
    assert.equal((await settleAfter()).kind, 'paid');
    assert.equal(world.connections, 0);
  });

  it('is paid for by a call of a resource that takes its money first now', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, world.backend.called.length], [ANSWER, 1]);
  });

  it('is paid for when less is left of the window than a new call needs', async () => {
    const refusal = 'invalid_exact_evm_payload_authorization_valid_before';
    assert.equal((await settleAfter({ refusal })).kind, 'paid');
  });

  it('is paid for under the terms that its proof accepted, after a reload that sells it otherwise', async () => {
    const result = await settleOnce({ refusal: 'invalid_payment_requirements' });
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, world.backend.called.length], [ANSWER, 1]);
  });

  it('is not shown to a call without the secret, nor to one for something else', async () => {
    const { tokenDigest: _own, ...onlooker } = world.terms;
    assert.partialDeepStrictEqual(await settleAfter({ terms: onlooker }), { kind: 'in_flight', alone: true });
    const other = { ...world.terms, bind: sha256('another input') };
    assert.partialDeepStrictEqual(await settleAfter({ terms: other }), { kind: 'spent', state: 'used' });
    assert.deepEqual([world.peer.names(), await state()], [[], 'worked']);
  });

  it('gone from the store: paid, and the backend is asked after the money', async () => {
    const result = await settleAfter({}, world.broken({ kept: async () => undefined }));
    assert.ok(result.kind === 'paid');
    assert.equal(result.kept, undefined);
  });

  it('gone from the store, of an operation that cannot be repeated: nothing is paid for it', async () => {
    const through = world.broken({ kept: async () => undefined });
    assert.equal((await settleAfter({ repeatable: false }, through)).kind, 'unavailable');
    assert.deepEqual([await state(), world.peer.names().includes('settle')], ['worked', false]);
  });

  it('that the store does not give now: nothing is paid for it', async () => {
    await assert.rejects(settleAfter({}, world.broken({ kept: world.silent })), StoreError);
    assert.deepEqual([await state(), world.peer.names().includes('settle')], ['worked', false]);
  });

  it('paid, and not to be had now, of an operation that cannot be repeated: no second call', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleAfter()).kind, 'uncertain');
    world.peer.script.reconcile = async () => PAID;
    const left = await settleAfter({ repeatable: false }, world.broken({ kept: world.silent }));
    assert.partialDeepStrictEqual(left, { kind: 'failed', retryable: true });
    assert.deepEqual([await state(), world.held.size, world.connections], ['settled', 0, 0]);
    const collected = await settleAfter({ repeatable: false });
    assert.ok(collected.kind === 'paid');
    assert.deepEqual([collected.kept, world.backend.called.length], [ANSWER, 1]);
  });

  it('waits for the end of its window where the chain shows no payment to a reconciler', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: 1 });
    world.later(2);
    const bench = reconcilerBench(world);
    await bench.open().round();
    const { dueAt = 0 } = (await record()) ?? {};
    assert.deepEqual([await state(), world.peer.names(), bench.exchanges], ['worked', ['reconcile'], 0]);
    assert.ok(dueAt >= world.terms.validBefore * 1_000 && dueAt <= world.terms.validBefore * 1_000 + 10_000);
  });

  /** What keeps it from being paid now, and what the call is answered. */
  const notNow: readonly (readonly [
    what: string,
    verify: () => Promise<RailVerdict>,
    kind: SettlementResult['kind'],
    refusal?: string,
  ])[] = [
    ['no gas', async () => NO_GAS, 'postponed'],
    ['no verdict', async () => OFFLINE, 'unavailable'],
    ['the local checks refuse it now', async () => ({ kind: 'valid' }), 'unavailable', 'test_payer_not_allowed'],
    ['the nonce is spent, and the chain does not show it yet', async () => SPENT, 'spent'],
  ];
  for (const [what, verify, kind, refusal] of notNow)
    it(`${what}: ${kind}, and it waits on`, async () => {
      world.peer.script.verify = verify;
      assert.equal((await settleAfter({ refusal })).kind, kind);
      assert.ok(!world.peer.names().includes('settle'));
      assert.partialDeepStrictEqual(await record(), { state: 'worked', leaseUntil: 0 });
      world.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await settleAfter()).kind, 'paid');
    });

  let leaving: AbortController;
  beforeEach(() => {
    leaving = new AbortController();
  });
  const endings = [
    ['the buyer leaves', 'gone', () => leaving.abort()],
    ['the gate closes', 'gate_closed', () => (world.gateOpen = false)],
  ] as const;
  for (const [what, kind, ending] of endings)
    it(`${what} while it is verified again: nothing is begun`, async () => {
      world.peer.script.verify = async () => {
        ending();
        return { kind: 'valid' };
      };
      assert.equal((await settleAfter({ left: leaving.signal })).kind, kind);
      assert.deepEqual([await state(), world.peer.names(), world.held.size], ['worked', ['verify'], 0]);
    });

  it('refused by the rail: a 402 that is recorded, and names the answer to its buyer', async () => {
    world.peer.script.verify = async () => NO_MONEY;
    const result = await settleAfter();
    assert.deepEqual(refusalIn(result), { reason: 'insufficient_funds', phase: 'settle', recorded: true });
    assert.ok(result.kind === 'refused');
    assert.equal(result.owed.answerOf, world.terms.payId);
    assert.partialDeepStrictEqual(await record(), { state: 'refused', evidence: 'unsent', answered: 200 });
    const { payId, resourceId, payer } = world.terms;
    assert.deepEqual(world.unpaid, [{ payId, resourceId, payer, reason: 'insufficient_funds' }]);
    assert.deepEqual(
      (await world.ledger.unpaid(10)).map((one) => one.payId),
      [payId],
    );
  });

  it('refused: its copies get the same 402, that of an onlooker without the answer’s name', async () => {
    world.peer.script.verify = async () => NO_MONEY;
    await settleAfter();
    const again = await settleAfter();
    assert.ok(again.kind === 'refused');
    assert.deepEqual([again.owed.answerOf, again.owed.recorded], [world.terms.payId, false]);
    const { tokenDigest: _own, ...onlooker } = world.terms;
    const other = await settleAfter({ terms: onlooker });
    assert.ok(other.kind === 'refused');
    assert.equal(other.owed.answerOf, undefined);
    assert.equal(world.unpaid.length, 1);
    assert.deepEqual(world.peer.names(), ['verify']);
  });

  it('refused by the settlement itself: reported once, and the answer stays', async () => {
    world.peer.script.settle = async () => SENDING_REFUSED;
    const result = await settleAfter();
    assert.ok(result.kind === 'refused');
    assert.equal(result.owed.answerOf, world.terms.payId);
    const reasons = world.unpaid.map(({ reason }) => reason);
    assert.deepEqual(reasons, [SENDING_REFUSED.reason]);
    assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
  });
});

describe('an answer that is kept, whose payer has all its settlements under way', () => {
  const world = workedOfEachTest();
  const { requestWith, state, record } = world;
  const fillUp = async () => {
    const time = virtualTime();
    Object.assign(world, { time });
    const settler = world.settler();
    const settled = Promise.withResolvers<typeof PAID>();
    world.peer.script.settle = () => settled.promise;
    const others = Array.from({ length: PAYER_SETTLEMENTS }, () =>
      settler.settle(requestWith({ terms: freshTerms() })),
    );
    await rest();
    const finish = async (): Promise<void> => {
      settled.resolve(PAID);
      await Promise.all(others);
    };
    return { time, settler, finish };
  };

  it('is kept before it waits, where the backend has just answered', async () => {
    const { settler, finish } = await fillUp();
    const terms = { ...freshTerms(), settle: 'after' } as const;
    const request = requestWith({ terms });
    const call = world.backend.callIn(request.journal);
    const work = { network: 'network', leastSeconds: 80, answerOf: undefined, call };
    const result = settler.settle({ ...request, work });
    await rest();
    assert.equal((await world.ledger.read(terms.payId))?.state, 'worked');
    assert.deepEqual(await world.ledger.kept(terms.payId), ANSWER);
    await finish();
    assert.equal((await result).kind, 'paid');
  });

  it('is crowded: it waits on for the same proof', async () => {
    const { time, settler, finish } = await fillUp();
    const result = settler.settle(requestWith());
    await rest();
    await time.pass(SLOT_WAIT_MS);
    assert.equal((await result).kind, 'crowded');
    assert.partialDeepStrictEqual(await record(), { state: 'worked', leaseUntil: 0 });
    await finish();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
  });

  it('is not paid for in its turn when the buyer has left meanwhile', async () => {
    const { settler, finish } = await fillUp();
    const leaving = new AbortController();
    const result = settler.settle(requestWith({ left: leaving.signal }));
    await rest();
    leaving.abort();
    await finish();
    assert.equal((await result).kind, 'gone');
    assert.equal(await state(), 'worked');
  });
});

describe('an answer that is kept, past the window of its proof', () => {
  const world = workedOfEachTest();
  const { settleAfter, settleOnce, later, record, state, receipts } = world;
  beforeEach(() => later(world.terms.validBefore * 1_000 - NOON_MS));

  const byReconciler = () => settleOnce({ left: undefined });
  for (const [who, settle] of [
    ['its buyer', settleAfter],
    ['the reconciler', byReconciler],
  ] as const) {
    it(`${who}: the chain shows it expired: refused, reported, and the answer waits for a new proof`, async () => {
      world.peer.script.reconcile = async () => EXPIRED;
      const result = await settle();
      assert.deepEqual(refusalIn(result), { reason: 'expired', phase: 'settle', recorded: true });
      assert.partialDeepStrictEqual(await record(), { state: 'refused', evidence: 'expired' });
      assert.deepEqual([world.peer.names(), world.unpaid.length], [['reconcile'], 1]);
      assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
      assert.deepEqual(await receipts(), []);
    });

    it(`${who}: the chain shows it paid: settled without being sent, and the answer is there`, async () => {
      world.peer.script.reconcile = async () => PAID;
      const result = await settle();
      assert.ok(result.kind === 'paid');
      assert.deepEqual([result.kept, world.peer.names(), world.unpaid], [ANSWER, ['reconcile'], []]);
    });

    const undecided: readonly (readonly [string, Reading])[] = [
      ['still open', OPEN],
      ['silent', SILENT],
    ];
    for (const [what, reading] of undecided)
      it(`${who}: the chain is ${what}: it stays, and nothing is sent`, async () => {
        world.peer.script.reconcile = async () => reading;
        assert.ok(['gone', 'unavailable'].includes((await settle()).kind));
        assert.deepEqual([await state(), world.peer.names()], ['worked', ['reconcile']]);
        const { dueAt = 0 } = (await record()) ?? {};
        assert.ok(dueAt > world.clock && dueAt <= world.clock + 60_000, 'it is looked at again');
      });

    it(`${who}: where no chain is asked it is refused by the clock of the store`, async () => {
      world.peer.script.seesChain = false;
      assert.equal((await settle()).kind, 'refused');
      assert.partialDeepStrictEqual(await record(), { state: 'refused', evidence: 'unsent' });
      assert.deepEqual(world.peer.names(), []);
    });
  }

  it('a reconciler fetches nothing: it refuses it, or leaves the kept answer of one that paid to its buyer', async () => {
    const bench = reconcilerBench(world);
    world.peer.script.reconcile = async () => PAID;
    later(10_000);
    await bench.open().round();
    assert.deepEqual([bench.exchanges, await state()], [0, 'undelivered']);
    const collected = await settleAfter();
    assert.ok(collected.kind === 'paid');
    assert.deepEqual([collected.kept, world.backend.called.length], [ANSWER, 1]);
    assert.deepEqual(bench.warnings, []);
  });
});

describe('an answer that is kept, and a settlement that was withdrawn', () => {
  const world = workedOfEachTest();
  const { settleAfter } = world;
  beforeEach(async () => {
    world.peer.script.settle = async () => ({
      kind: 'withdrawn',
      reason: 'relayer_unfunded',
      cause: 'no node took it',
      transaction: HASH,
    });
    assert.equal((await settleAfter()).kind, 'postponed');
    world.peer.asked.length = 0;
    world.peer.script.settle = async () => PAID;
  });

  for (const [refusal, kind] of [
    ['invalid_payment_requirements', 'paid'],
    ['invalid_exact_evm_payload_authorization_valid_before', 'paid'],
    ['test_payer_not_allowed', 'unavailable'],
  ] as const)
    it(`begins anew unless the checks have something against its own terms: ${refusal}: ${kind}`, async () => {
      assert.equal((await settleAfter({ refusal })).kind, kind);
    });

  it('begins anew with the same proof, without the backend', async () => {
    world.reachable = false;
    const result = await settleAfter();
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, world.backend.called.length], [ANSWER, 1]);
    assert.deepEqual(world.peer.names(), ['reconcile', 'verify', 'settle']);
  });
});

describe('an answer that is kept, and a settlement whose outcome stayed open', () => {
  const world = workedOfEachTest();
  const { settleAfter, settleOnce } = world;
  beforeEach(async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'slow', transaction: HASH });
    assert.equal((await settleAfter()).kind, 'uncertain');
    world.peer.asked.length = 0;
    world.peer.script.settle = async () => PAID;
    world.reachable = false;
  });

  it('open: sent again, also without the backend', async () => {
    const result = await settleOnce({ left: undefined });
    assert.ok(result.kind === 'paid');
    assert.deepEqual([result.kept, world.peer.names()], [ANSWER, ['reconcile', 'settle']]);
  });
});

describe('the budget of unpaid work, as settlements use it', () => {
  const world = worldOfEachTest();
  const { settleAfter, settleOnce } = world;
  const other = (payer: string) => ({ ...freshTerms(), payer });
  const sold = async (): Promise<string> => (await settleAfter({ terms: other('0xother') })).kind;
  beforeEach(() => {
    world.unpaidLimits = { ...world.unpaidLimits, perResource: 1 };
    world.unpaidWork = createUnpaidWork(() => world.unpaidLimits);
  });
  const uncertain = async (): Promise<void> => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'slow' });
    assert.equal((await settleAfter()).kind, 'uncertain');
    world.peer.script.settle = async () => PAID;
  };

  it('counts what is not paid yet, and no more when the same proof has paid', async () => {
    await uncertain();
    assert.equal(await sold(), 'refused');
    assert.equal((await settleAfter()).kind, 'paid');
    assert.equal(await sold(), 'paid');
  });

  it('counts it no more when the reconciler has found it paid', async () => {
    await uncertain();
    assert.equal((await settleOnce({ left: undefined })).kind, 'paid');
    assert.equal(await sold(), 'paid');
  });

  it('counts a refused one on', async () => {
    world.peer.script.settle = async () => SENDING_REFUSED;
    assert.equal((await settleAfter()).kind, 'refused');
    assert.equal(await sold(), 'refused');
    assert.equal(world.backend.called.length, 1);
  });
});

describe('an answer that is kept under a mandate', () => {
  const world = workedOfEachTest();

  it('is not paid for under another one', async () => {
    const mandate = mandateText(claimOf('another'));
    assert.equal((await world.settleAfter({ terms: { ...world.terms, mandate } })).kind, 'in_flight');
    assert.deepEqual([await world.state(), world.peer.names()], ['worked', []]);
    assert.equal((await world.settleAfter()).kind, 'paid');
  });
});
