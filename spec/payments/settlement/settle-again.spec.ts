import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import type { Reading } from '../../../src/payments/rail.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { EXPIRED, freshTerms, HASH, PAID, refusalIn, SPENT, worldOfEachTest } from './world.ts';

describe('a payment that was not delivered', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, recorder, facts, later, record, receipts, broken, silent } = world;

  const fail = async (requestWritten: boolean): Promise<void> => {
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 0, requestWritten, repeatable: false });
  };

  it('is not sent twice when the backend may not be asked twice', async () => {
    await fail(true);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
    assert.equal((await record())?.leaseUntil, 0);
  });

  it('is sent once when it certainly never reached the backend: after a crash it is not sent again', async () => {
    await fail(false);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'paid');
    later(8_000);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
  });

  it('whose buyer left gets the answer that was kept, without another call to the backend, whatever the method', async () => {
    const result = await pay();
    const answer = keptAnswer();
    const left = { failure: { code: 'client_gone' }, requestWritten: true, repeatable: false } as const;
    await recorder().undelivered(result.record, { ...facts(result, { answer }), ...left });
    const again = await settleOnce({ repeatable: false });
    assert.ok(again.kind === 'paid');
    assert.deepEqual({ ...again.kept, body: [...(again.kept?.body ?? [])] }, { ...answer, body: [...answer.body] });
    later(8_000);
    const afterCrash = await settleOnce({ repeatable: false });
    assert.ok(afterCrash.kind === 'paid' && afterCrash.kept !== undefined, 'and is not lost after a crash');
  });

  it('and whose attempt died before it recorded that: a method that may not be repeated waits as undelivered', async () => {
    await pay();
    later(8_000);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
    const { state, dueAt = 0, settledAt = 0, leaseUntil } = (await record()) ?? {};
    assert.deepEqual([state, dueAt - settledAt, leaseUntil], ['undelivered', 24 * 60 * 60 * 1_000, 0]);
    assert.deepEqual(
      (await receipts()).map(({ delivered, metadata }) => [delivered, metadata]),
      [[false, { callId: world.terms.callId, backendErrorCode: 'interrupted' }]],
    );
  });

  it('a copy that only waited for it does not try again: the backend must not get all copies', async () => {
    await fail(true);
    const copy = await world.settler().settle(world.requestWith(), true);
    assert.ok(copy.kind === 'failed' && copy.retryable);
    assert.equal((await settleOnce()).kind, 'paid', 'a later call collects');
  });

  it('written, but every reply lost: the request has not left, so the same proof collects whatever the method', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await world.ledger.advance(command);
      return command.to === 'settled' ? silent() : answer;
    };
    assert.equal((await settleOnce({ repeatable: false }, broken({ advance }))).kind, 'uncertain');
    assert.equal((await record())?.state, 'settled');
    const note: PaymentLedger['note'] = async (command) => {
      await world.ledger.note(command);
      return silent();
    };
    await assert.rejects(settleOnce({ repeatable: false }, broken({ note })), StoreError);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'paid');
    later(8_000);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'spent', 'now it may have left');
  });
});

describe('an uncertain settlement', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record, broken, silent } = world;

  beforeEach(async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer', transaction: HASH });
    const result = await settleOnce();
    assert.ok(result.kind === 'uncertain' && result.transaction === HASH);
    assert.equal((await record())?.leaseUntil, 0, 'the same proof may ask again at once');
    world.peer.asked.length = 0;
  });

  it('found on the chain: paid, without a second settlement', async () => {
    world.peer.script.reconcile = async () => PAID;
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(world.peer.asked, [{ what: 'reconcile', amount: '7', knownTransaction: HASH }]);
  });

  it('shown worthless: refused for good', async () => {
    world.peer.script.reconcile = async () => EXPIRED;
    assert.deepEqual(refusalIn(await settleOnce()), { reason: 'expired', phase: 'settle', recorded: true });
    assert.equal((await record())?.evidence, 'expired');
  });

  it('still open: sent again as what it was first reserved for, knowing that it was sent before', async () => {
    world.peer.script.settle = async () => PAID;
    const dearer = { ...world.terms, units: '900', proof: freshTerms().proof };
    assert.equal((await settleOnce({ terms: dearer })).kind, 'paid');
    assert.deepEqual(world.peer.asked, [
      { what: 'reconcile', amount: '7', knownTransaction: HASH },
      { what: 'settle', amount: '7', sentBefore: true },
    ]);
  });

  it('still open, and the backend cannot be reached: nothing more is sent, and the proof may ask again', async () => {
    world.reachable = false;
    world.peer.script.settle = async () => PAID;
    assert.equal((await settleOnce()).kind, 'uncertain');
    assert.deepEqual(world.peer.names(), ['reconcile']);
    assert.equal((await record())?.leaseUntil, 0);
    world.reachable = true;
    assert.equal((await settleOnce()).kind, 'paid');
    assert.equal(world.connections, 1, 'held for the delivery');
  });

  it('the chain is silent: uncertain however long ago its window ended, until the chain shows it unspent', async () => {
    world.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    for (const ms of [0, 121_000, 3_600_000]) {
      later(ms);
      assert.equal((await settleOnce()).kind, 'uncertain');
    }
    world.peer.script.reconcile = async () => EXPIRED;
    assert.equal((await settleOnce()).kind, 'refused');
  });

  it('the ledger is silent as well: uncertain', async () => {
    world.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    assert.equal((await settleOnce({}, broken({ note: silent }))).kind, 'uncertain');
    world.peer.script.reconcile = async () => Promise.reject(new Error('bug'));
    later(10_000);
    assert.equal((await settleOnce()).kind, 'uncertain');
  });

  it('is looked at again later the older it is, from a second to a minute', async () => {
    world.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    const pauses: number[] = [];
    for (const ms of [0, 20_000, 20_000, 10_000_000]) {
      later(ms);
      await settleOnce();
      const { dueAt = 0, changedAt = 0 } = (await record()) ?? {};
      pauses.push(dueAt - changedAt);
    }
    assert.deepEqual(pauses, [1_000, 5_000, 10_000, 60_000]);
  });
});

describe('a settlement that ends badly', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record, state, receipts, silent } = world;

  it('a settlement that throws is uncertain, not an error of the call', async () => {
    world.peer.script.settle = () => Promise.reject(new Error('bug'));
    assert.equal((await settleOnce()).kind, 'uncertain');
    assert.equal(await state(), 'settling');
  });

  it('settled on chain and not written: uncertain, and found again', async () => {
    const result = await settleOnce({}, world.brokenAt('settled', silent));
    assert.equal(result.kind, 'uncertain', 'the money has moved');
    const { leaseUntil, transaction } = (await record()) ?? {};
    assert.deepEqual([leaseUntil, transaction], [0, HASH]);
    world.peer.script.reconcile = async () => PAID;
    assert.equal((await settleOnce()).kind, 'paid');
    assert.equal(await world.countOf('payment.settled'), 1);
  });

  it('found paid by a call that is overtaken meanwhile: its own events are not lost, and none comes twice', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await settleOnce();
    world.peer.script.reconcile = async () => {
      later(20_000);
      world.peer.script.reconcile = async () => PAID;
      assert.equal((await settleOnce()).kind, 'paid');
      return PAID;
    };
    const overtaken = world.requestWith();
    assert.equal((await world.settler().settle(overtaken)).kind, 'in_flight');
    overtaken.journal.flush();
    assert.deepEqual(world.flushedTypes(), ['resource.requested']);
    assert.equal(await world.countOf('payment.settled'), 1);
  });

  it('settled by a call that lost its lease: in flight, and its events go with the attempt that took over', async () => {
    world.peer.script.settle = async () => {
      later(20_000);
      world.peer.script.reconcile = async () => PAID;
      assert.equal((await settleOnce()).kind, 'paid');
      return PAID;
    };
    assert.equal((await settleOnce()).kind, 'in_flight');
    assert.equal(await world.countOf('payment.settled'), 1);
    assert.equal((await receipts()).length, 1);
  });
});

const UNFUNDED = { kind: 'unfunded', cause: 'no gas' } as const;
const WITHDRAWN = {
  kind: 'withdrawn',
  reason: 'relayer_unfunded',
  cause: 'no node took it',
  transaction: HASH,
} as const;
const POSTPONED = { kind: 'postponed', reason: 'relayer_unfunded' } as const;

describe('a rail that cannot pay gas', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, types, receipts } = world;

  it('known before anything is written: postponed, nothing stays behind, and the same proof pays later', async () => {
    world.peer.script.verify = async () => UNFUNDED;
    assert.partialDeepStrictEqual(await settleOnce(), POSTPONED);
    assert.equal(await record(), undefined);
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.deepEqual([await types(), await receipts()], [[], []]);
    assert.equal(world.held.size, 0);
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce()).kind, 'paid');
  });
});

describe('a settlement that was withdrawn', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record, state, types, receipts, broken, silent } = world;

  beforeEach(async () => {
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0x02f8' });
      return WITHDRAWN;
    };
    assert.partialDeepStrictEqual(await settleOnce(), POSTPONED);
    world.peer.asked.length = 0;
    world.peer.script.settle = async () => PAID;
  });

  const windowEnds = (): number => world.terms.validBefore * 1_000;

  it('keeps the hash and nothing that could be sent, and is not looked at before its window ends', async () => {
    const { transaction, rawTransaction, leaseUntil, dueAt = 0 } = (await record()) ?? {};
    assert.deepEqual([await state(), transaction, rawTransaction, leaseUntil], ['withdrawn', HASH, '0x', 0]);
    assert.ok(dueAt >= windowEnds() && dueAt <= windowEnds() + 10_000);
    assert.deepEqual([await types(), await receipts()], [['resource.requested', 'payment.verified'], []]);
    assert.equal(world.held.size, 0);
  });

  it('begins anew with the same proof: the chain is asked first, and the rail gets what was withdrawn', async () => {
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(world.peer.asked, [
      { what: 'reconcile', amount: '7', knownTransaction: HASH },
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false, withdrawnBefore: true },
    ]);
    assert.equal(await state(), 'settled');
  });

  it('mined all the same: paid, without a second settlement', async () => {
    world.peer.script.reconcile = async () => PAID;
    const result = await settleOnce();
    assert.ok(result.kind === 'paid' && result.record.transaction === HASH && result.record.recovered === undefined);
    assert.deepEqual(world.peer.names(), ['reconcile']);
  });

  it('shown worthless: refused for good, by the chain’s evidence', async () => {
    world.peer.script.reconcile = async () => EXPIRED;
    assert.equal((await settleOnce()).kind, 'refused');
    assert.deepEqual([await state(), (await record())?.evidence], ['refused', 'expired']);
  });

  /** After a 402 the buyer would pay twice if the transaction is mined later. */
  type Script = Partial<typeof world.peer.script>;
  const closing = async () => {
    world.gateOpen = false;
    return { kind: 'valid' } as const;
  };
  const never402: readonly (readonly [
    what: string,
    script: Script,
    kind: SettlementResult['kind'],
    afterMs?: number,
  ])[] = [
    ['still no gas', { verify: async () => UNFUNDED }, 'postponed'],
    [
      'the payer has no funds any more',
      { verify: async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false }) },
      'unavailable',
    ],
    ['spent, and the chain does not show it yet', { verify: async () => SPENT }, 'unavailable'],
    ['no verdict', { verify: async () => ({ kind: 'unavailable', cause: 'cut' }) }, 'unavailable'],
    ['the chain is silent', { reconcile: async () => ({ kind: 'unknown', cause: 'cut' }) }, 'unavailable'],
    ['its window is over by our clock alone', {}, 'unavailable', 121_000],
    ['the gateway is closing', { verify: closing }, 'gate_closed'],
  ];
  for (const [what, script, kind, afterMs = 0] of never402)
    it(`${what}: ${kind}, nothing is sent, and it stays withdrawn`, async () => {
      Object.assign(world.peer.script, script);
      later(afterMs);
      assert.equal((await settleOnce()).kind, kind);
      assert.ok(!world.peer.names().includes('settle'));
      const { leaseUntil, transaction } = (await record()) ?? {};
      assert.deepEqual([await state(), leaseUntil, transaction], ['withdrawn', 0, HASH]);
    });

  it('a proof that the local checks refuse now is answered by its record', async () => {
    assert.equal((await settleOnce({ refusal: 'invalid_payment_requirements' })).kind, 'unavailable');
    assert.equal(await state(), 'withdrawn');
  });

  it('is never sent by a reconciler: it only asks the chain', async () => {
    const kinds: string[] = [];
    for (const ms of [0, 121_000, 600_000]) {
      later(ms);
      kinds.push((await settleOnce({ left: undefined })).kind);
    }
    assert.deepEqual(kinds, ['unavailable', 'unavailable', 'unavailable']);
    assert.deepEqual(new Set(world.peer.names()), new Set(['reconcile']));
    world.peer.script.reconcile = async () => EXPIRED;
    assert.equal((await settleOnce({ left: undefined })).kind, 'refused');
  });

  it('an attempt that died with it leaves it to the next one', async () => {
    world.peer.script.verify = () => Promise.reject(new Error('bug'));
    await assert.rejects(settleOnce());
    assert.equal((await settleOnce()).kind, 'in_flight');
    later(20_000);
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('a store that is silent when it is put back is an error of the call: nothing was sent', async () => {
    world.peer.script.verify = async () => UNFUNDED;
    await assert.rejects(settleOnce({}, broken({ note: silent })), /did not answer/);
    assert.ok(!world.peer.names().includes('settle'));
  });
});

describe('a withdrawal that cannot be written', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, state, silent } = world;

  it('the store is silent: uncertain, because a reconciler may find it settling and send it', async () => {
    world.peer.script.settle = async () => WITHDRAWN;
    const result = await settleOnce({}, world.brokenAt('withdrawn', silent));
    assert.ok(result.kind === 'uncertain' && result.transaction === HASH);
    assert.equal(await state(), 'settling');
  });

  it('another attempt took over meanwhile: that one decides', async () => {
    world.peer.script.settle = async () => {
      later(20_000);
      world.peer.script.settle = async () => PAID;
      assert.equal((await settleOnce()).kind, 'paid');
      return WITHDRAWN;
    };
    assert.equal((await settleOnce()).kind, 'in_flight');
    assert.equal(await state(), 'settled');
  });
});

const TOO_OLD = 'invalid_exact_evm_payload_authorization_valid_before';
const OPEN: Reading = { kind: 'open' };
const UNKNOWN: Reading = { kind: 'unknown', cause: 'no answer' };
const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Two signs that the store lost a payment: the rail reports the nonce as spent, or
 * the proof is too old to be new.
 */
const SIGNS = ['spent', 'late'] as const;

describe('an authorization without a record that may have paid us', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record, types, receipts, silent } = world;

  const bring = (
    sign: (typeof SIGNS)[number],
    reading: Reading,
    through?: PaymentLedger,
  ): Promise<SettlementResult> => {
    world.peer.script.verify = async () => (sign === 'spent' ? SPENT : { kind: 'valid' });
    world.peer.script.reconcile = async () => reading;
    return settleOnce(sign === 'late' ? { refusal: TOO_OLD } : {}, through);
  };

  const rows: readonly (readonly [(typeof SIGNS)[number], Reading, SettlementResult['kind']])[] = [
    ['spent', PAID, 'paid'],
    ['spent', EXPIRED, 'refused'],
    ['spent', OPEN, 'unavailable'],
    ['spent', UNKNOWN, 'unavailable'],
    ['late', PAID, 'paid'],
    ['late', EXPIRED, 'refused'],
    ['late', OPEN, 'refused'],
    ['late', UNKNOWN, 'unavailable'],
  ];
  for (const [sign, reading, kind] of rows)
    it(`${sign}, the chain shows ${reading.kind}: ${kind}`, async () => {
      const result = await bring(sign, reading);
      assert.equal(result.kind, kind);
      assert.ok(!world.peer.names().includes('settle'), 'nothing is sent');
      if (result.kind === 'refused') assert.equal(result.owed.reason, sign === 'late' ? TOO_OLD : SPENT.reason);
      if (kind !== 'paid') assert.equal(await record(), undefined, 'the question leaves nothing behind');
    });

  it('paid and sent back since: spent, and nothing is delivered for it', async () => {
    world.peer.script.sentBack = async () => true;
    const result = await bring('spent', PAID);
    assert.ok(result.kind === 'spent' && result.state === 'used');
    assert.equal(await record(), undefined);
    world.peer.script.sentBack = silent;
    assert.equal((await bring('spent', PAID)).kind, 'unavailable');
  });

  it('spent, and there is no chain to ask: called spent, because a 402 could charge a second time', async () => {
    world.peer.script.seesChain = false;
    const result = await bring('spent', OPEN);
    assert.ok(result.kind === 'spent' && result.state === 'used');
    assert.equal(await record(), undefined);
  });

  for (const sign of SIGNS)
    it(`${sign} and paid: the record is made again, marked so, and is no second settlement`, async () => {
      const result = await bring(sign, PAID);
      assert.ok(result.kind === 'paid');
      const { state, recovered, evidence, transaction } = result.record;
      assert.deepEqual([state, recovered, evidence, transaction], ['settled', 'chain', 'logs', HASH]);
      assert.deepEqual(await types(), ['resource.requested', 'payment.settled']);
      const [receipt] = await receipts();
      const { receiptId, callId } = world.terms;
      assert.deepEqual([receipt?.id, receipt?.metadata], [receiptId, { callId, recovered: 'chain' }]);
    });

  for (const sign of SIGNS)
    it(`${sign} and paid, with the policy "refuse": 409 material, never a 402`, async () => {
      world.onStoreLoss = 'refuse';
      const result = await bring(sign, PAID);
      assert.deepEqual(result, { kind: 'spent', state: 'used' });
      assert.equal(await record(), undefined);
    });

  it('is delivered once: what was delivered then is over', async () => {
    const result = await bring('spent', PAID);
    assert.ok(result.kind === 'paid');
    await world.deliver(result);
    const again = await bring('late', PAID);
    assert.ok(again.kind === 'spent' && again.state === 'delivered');
    assert.deepEqual(
      (await receipts()).map(({ delivered, metadata }) => [delivered, metadata]),
      [[true, { callId: world.terms.callId, recovered: 'chain' }]],
    );
  });

  it('is delivered until a day after the end of its validity, and not a millisecond longer', async () => {
    later(world.terms.validBefore * 1_000 + DAY_MS - world.clock);
    assert.equal((await bring('late', PAID)).kind, 'paid');
    world.terms = { ...world.terms, payId: 'f'.repeat(64) };
    later(1);
    assert.deepEqual(await bring('late', PAID), { kind: 'spent', state: 'used' });
  });

  it('late, and there is no chain to ask: refused without a question', async () => {
    world.peer.script.seesChain = false;
    assert.equal((await bring('late', PAID)).kind, 'refused');
    assert.deepEqual(world.peer.names(), []);
  });

  it('paid, and the store dies then: uncertain, and the next attempt finds it', async () => {
    assert.equal((await bring('spent', PAID, world.brokenAt('settled', silent))).kind, 'uncertain');
    assert.equal((await bring('spent', PAID)).kind, 'paid');
    assert.equal(await world.countOf('payment.settled'), 1);
  });

  it('a fault of the proof does not count against a record: an uncertain settlement is reconciled whatever its age', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    world.peer.script.reconcile = async () => PAID;
    const result = await settleOnce({ refusal: TOO_OLD });
    assert.ok(result.kind === 'paid' && result.record.recovered === undefined);
  });

  describe('the buyer of a payment that was found', () => {
    const TOKEN = 'a'.repeat(64);
    const OTHER = 'b'.repeat(64);
    /** The policy, the mark in the transaction, the digest of the token that came, the answer. */
    const owners: readonly (readonly [
      'exclusive' | 'shared' | 'refuse' | 'not offered',
      string | undefined,
      string | undefined,
      SettlementResult['kind'],
    ])[] = [
      ['exclusive', undefined, undefined, 'paid'],
      ['exclusive', undefined, TOKEN, 'paid'],
      ['exclusive', TOKEN, TOKEN, 'paid'],
      ['exclusive', TOKEN, OTHER, 'spent'],
      ['exclusive', TOKEN, undefined, 'spent'],
      ['shared', undefined, undefined, 'spent'],
      ['shared', undefined, TOKEN, 'spent'],
      ['shared', TOKEN, TOKEN, 'paid'],
      ['shared', TOKEN, OTHER, 'spent'],
      ['shared', TOKEN, undefined, 'spent'],
      ['refuse', TOKEN, TOKEN, 'spent'],
      ['not offered', undefined, TOKEN, 'spent'],
      ['not offered', TOKEN, TOKEN, 'paid'],
    ];
    for (const [policy, mark, token, kind] of owners)
      it(`${policy}, ${mark ? 'marked' : 'not marked'}, ${token === undefined ? 'no token' : token === TOKEN ? 'the token' : 'another token'}: ${kind}`, async () => {
        world.payToExclusive = policy !== 'shared';
        world.onStoreLoss = policy === 'refuse' ? 'refuse' : 'deliver';
        world.offered = policy !== 'not offered';
        world.peer.script.markOf = async () => mark;
        if (token !== undefined) world.terms = { ...world.terms, tokenDigest: token };
        // It may be too old by now to be the secret of a new purchase.
        world.peer.script.verify = async () => SPENT;
        world.peer.script.reconcile = async () => PAID;
        const result = await settleOnce({ token: { kind: 'worthless' } });
        assert.equal(result.kind, kind);
        if (result.kind === 'paid') {
          assert.equal(result.record.tokenDigest, mark, 'and it is the secret of the record again');
          assert.deepEqual(world.unclaimed, []);
          return;
        }
        assert.ok(result.kind === 'spent' && result.state === 'used');
        assert.deepEqual(world.unclaimed, [world.terms.payId]);
        assert.deepEqual([await record(), await receipts()], [undefined, []]);
      });

    it('is not decided while the node does not show the transaction', async () => {
      world.peer.script.markOf = silent;
      assert.equal((await bring('spent', PAID)).kind, 'unavailable');
      assert.deepEqual([await record(), world.unclaimed], [undefined, []]);
    });
  });
});
