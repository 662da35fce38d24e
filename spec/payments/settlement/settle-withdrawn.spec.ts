import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { EXPIRED, HASH, PAID, SPENT } from './scripted-rail.ts';
import { freshTerms, worldOfEachTest } from './world.ts';

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

  it('can be withdrawn again and again', async () => {
    world.peer.script.settle = async () => WITHDRAWN;
    for (let attempt = 0; attempt < 3; attempt += 1) assert.partialDeepStrictEqual(await settleOnce(), POSTPONED);
    assert.equal(await state(), 'withdrawn');
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

  it('keeps its purchase: for another one the proof is used', async () => {
    const other = { ...world.terms, bind: freshTerms().payId };
    assert.partialDeepStrictEqual(await settleOnce({ terms: other }), { kind: 'spent', state: 'used' });
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
  const { settleOnce, later, state, broken, silent } = world;

  it('the store is silent: uncertain, because a reconciler may find it settling and send it', async () => {
    world.peer.script.settle = async () => WITHDRAWN;
    const ledger = broken({
      advance: (command) => (command.to === 'withdrawn' ? silent() : world.ledger.advance(command)),
    });
    const result = await settleOnce({}, ledger);
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
