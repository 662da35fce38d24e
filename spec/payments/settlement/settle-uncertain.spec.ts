import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { EXPIRED, HASH, PAID } from './scripted-rail.ts';
import { freshTerms, tillOfEachTest } from './till.ts';

/** What a 402 would say. */
function refusal(sale: SettlementResult): unknown {
  assert.ok(sale.kind === 'refused', `${sale.kind} is no refusal`);
  assert.ok(SafeToRechallenge.is(sale.owed));
  const { reason, phase, recorded } = sale.owed;
  return { reason, phase, recorded };
}

describe('an uncertain settlement', () => {
  const till = tillOfEachTest();
  const { take, later, record, broken, silent } = till;

  beforeEach(async () => {
    till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer', transaction: HASH });
    const sale = await take();
    assert.ok(sale.kind === 'uncertain' && sale.transaction === HASH);
    assert.equal((await record())?.leaseUntil, 0, 'the same proof may ask again at once');
    till.peer.asked.length = 0;
  });

  it('found on the chain: paid, without a second settlement', async () => {
    till.peer.script.reconcile = async () => PAID;
    assert.equal((await take()).kind, 'paid');
    assert.deepEqual(till.peer.asked, [{ what: 'reconcile', amount: '7', knownTransaction: HASH }]);
  });

  it('shown worthless: refused for good', async () => {
    till.peer.script.reconcile = async () => EXPIRED;
    assert.deepEqual(refusal(await take()), { reason: 'expired', phase: 'settle', recorded: true });
    assert.equal((await record())?.evidence, 'expired');
  });

  it('still open: sent again as what it was first reserved for, knowing that it was sent before', async () => {
    till.peer.script.settle = async () => PAID;
    const dearer = { ...till.terms, units: '900', proof: freshTerms().proof };
    assert.equal((await take({ terms: dearer })).kind, 'paid');
    assert.deepEqual(till.peer.asked, [
      { what: 'reconcile', amount: '7', knownTransaction: HASH },
      { what: 'settle', amount: '7', sentBefore: true },
    ]);
  });

  it('still open, and the merchant cannot be reached: nothing more is sent, and the proof may ask again', async () => {
    till.reachable = false;
    till.peer.script.settle = async () => PAID;
    assert.equal((await take()).kind, 'uncertain');
    assert.deepEqual(till.peer.names(), ['reconcile']);
    assert.equal((await record())?.leaseUntil, 0);
    till.reachable = true;
    assert.equal((await take()).kind, 'paid');
    assert.equal(till.connections, 1, 'held for the delivery');
  });

  it('the chain is silent: uncertain however long ago its window ended, until the chain shows it unspent', async () => {
    till.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    for (const ms of [0, 121_000, 3_600_000]) {
      later(ms);
      assert.equal((await take()).kind, 'uncertain');
    }
    till.peer.script.reconcile = async () => EXPIRED;
    assert.equal((await take()).kind, 'refused');
  });

  it('the ledger is silent as well: uncertain', async () => {
    till.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    assert.equal((await take({}, broken({ note: silent }))).kind, 'uncertain');
    till.peer.script.reconcile = async () => Promise.reject(new Error('bug'));
    later(10_000);
    assert.equal((await take()).kind, 'uncertain');
  });

  it('is looked at again later the older it is, from a second to a minute', async () => {
    till.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
    const pauses: number[] = [];
    for (const ms of [0, 20_000, 20_000, 10_000_000]) {
      later(ms);
      await take();
      const { dueAt = 0, changedAt = 0 } = (await record()) ?? {};
      pauses.push(dueAt - changedAt);
    }
    assert.deepEqual(pauses, [1_000, 5_000, 10_000, 60_000]);
  });
});

describe('a settlement that ends badly', () => {
  const till = tillOfEachTest();
  const { take, later, record, state, types, receipts, broken, silent } = till;

  it('a settlement that throws is uncertain, not an error of the call', async () => {
    till.peer.script.settle = () => Promise.reject(new Error('bug'));
    assert.equal((await take()).kind, 'uncertain');
    assert.equal(await state(), 'settling');
  });

  it('settled on chain and not written: uncertain, and found again', async () => {
    const advance: PaymentLedger['advance'] = (command) =>
      command.to === 'settled' ? silent() : till.ledger.advance(command);
    const sale = await take({}, broken({ advance }));
    assert.equal(sale.kind, 'uncertain', 'the money has moved');
    const { leaseUntil, transaction } = (await record()) ?? {};
    assert.deepEqual([leaseUntil, transaction], [0, HASH]);
    till.peer.script.reconcile = async () => PAID;
    assert.equal((await take()).kind, 'paid');
    assert.equal((await types()).filter((type) => type === 'payment.settled').length, 1);
  });

  it('found paid by a call that is overtaken meanwhile: its own events are not lost, and nothing is told twice', async () => {
    till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await take();
    till.peer.script.reconcile = async () => {
      later(20_000);
      till.peer.script.reconcile = async () => PAID;
      assert.equal((await take()).kind, 'paid');
      return PAID;
    };
    const overtaken = till.order();
    assert.equal((await till.settler().settle(overtaken)).kind, 'in_flight');
    overtaken.journal.flush();
    assert.deepEqual(
      till.flushed.map(({ type }) => type),
      ['resource.requested'],
    );
    assert.equal((await types()).filter((type) => type === 'payment.settled').length, 1);
  });

  it('settled by a call that lost its lease: in flight, and its events go with the one that has the say', async () => {
    till.peer.script.settle = async () => {
      later(20_000);
      till.peer.script.reconcile = async () => PAID;
      assert.equal((await take()).kind, 'paid');
      return PAID;
    };
    assert.equal((await take()).kind, 'in_flight');
    assert.equal((await types()).filter((type) => type === 'payment.settled').length, 1);
    assert.equal((await receipts()).length, 1);
  });
});
