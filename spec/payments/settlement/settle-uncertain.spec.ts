import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { EXPIRED, HASH, PAID } from './scripted-rail.ts';
import { freshTerms, refusalIn, worldOfEachTest } from './world.ts';

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
  const { settleOnce, later, record, state, receipts, broken, silent } = world;

  it('a settlement that throws is uncertain, not an error of the call', async () => {
    world.peer.script.settle = () => Promise.reject(new Error('bug'));
    assert.equal((await settleOnce()).kind, 'uncertain');
    assert.equal(await state(), 'settling');
  });

  it('settled on chain and not written: uncertain, and found again', async () => {
    const advance: PaymentLedger['advance'] = (command) =>
      command.to === 'settled' ? silent() : world.ledger.advance(command);
    const result = await settleOnce({}, broken({ advance }));
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
