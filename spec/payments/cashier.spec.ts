import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { createCashier } from '../../src/payments/cashier.ts';
import type { PaymentLedger } from '../../src/payments/ledger/ledger.ts';
import type { Sale } from '../../src/payments/sale.ts';
import type { Reading } from '../../src/payments/x402/rail.ts';
import type { PaymentRequirements } from '../../src/payments/x402/wire.ts';
import { StoreError } from '../../src/store/store.ts';
import { HASH, OFFER, tillOfEachTest } from './till.ts';

describe('the cashier', () => {
  const till = tillOfEachTest();
  const { order, take, later, state, types, broken, silent } = till;

  it('paid: verify, then settle, with state, receipt and events in the same writes', async () => {
    const sale = await take();
    assert.equal(sale.kind, 'paid');
    assert.deepEqual(till.peer.asked, [
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false },
    ]);
    assert.equal(await state(), 'settled');
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
    const { receipts } = await till.store.receipts.page({ limit: 5 });
    assert.deepEqual(
      receipts.map(({ id, delivered, payment }) => [id, delivered, payment?.externalReference]),
      [[till.terms.receiptId, false, HASH]],
    );
    assert.deepEqual(till.flushed, [], 'nothing went another way');
  });

  it('the transaction is in the ledger before it is sent, and is not sent when it cannot be', async () => {
    till.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      assert.equal((await till.ledger.read(till.terms.payId))?.transaction, HASH);
      return { kind: 'settled', transaction: HASH };
    };
    assert.equal((await take()).kind, 'paid');

    till.terms = { ...till.terms, payId: randomBytes(32).toString('hex') };
    let sent = false;
    till.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      sent = true;
      return { kind: 'settled', transaction: HASH };
    };
    const fenced = broken({ note: async () => ({ kind: 'fenced' }) });
    assert.equal((await take({}, fenced)).kind, 'uncertain');
    assert.equal(sent, false);
  });

  describe('refusals', () => {
    it('before anything was sent: the reservation is gone, the proof may come again', async () => {
      till.peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
      assert.deepEqual(await take(), { kind: 'refused', reason: 'insufficient_funds', phase: 'verify' });
      assert.equal(await state(), undefined);
    });

    it('no verdict: 503 material, the reservation is gone', async () => {
      till.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'down' });
      assert.equal((await take()).kind, 'unavailable');
      assert.equal(await state(), undefined);
    });

    it('by a call that lost its lease meanwhile: not its word to say', async () => {
      till.peer.script.verify = async () => {
        later(20_000);
        till.peer.script.verify = async () => ({ kind: 'valid' });
        assert.equal((await take()).kind, 'paid');
        return { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false };
      };
      assert.equal((await take()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

    it('by the settlement: final, with its event in the same write, and the same answer for the same proof', async () => {
      till.peer.script.settle = async () => ({ kind: 'refused', reason: 'insufficient_funds' });
      assert.deepEqual(await take(), {
        kind: 'refused',
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: true,
      });
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.rejected']);
      assert.deepEqual(await take(), { kind: 'refused', reason: 'insufficient_funds', phase: 'settle' });
      assert.deepEqual(till.peer.names(), ['verify', 'settle']);
    });

    it('that cannot be written are uncertain, never a 402', async () => {
      till.peer.script.settle = async () => ({ kind: 'refused', reason: 'insufficient_funds' });
      const advance: PaymentLedger['advance'] = async (command) =>
        command.to === 'refused' ? { kind: 'fenced' } : till.ledger.advance(command);
      assert.equal((await take({}, broken({ advance }))).kind, 'uncertain');
    });
  });

  describe('a nonce that is said to be spent, without a record', () => {
    const rows: readonly (readonly [Reading, Sale['kind']])[] = [
      [{ kind: 'settled', transaction: HASH }, 'spent'],
      [{ kind: 'refused', reason: 'cancelled' }, 'refused'],
      [{ kind: 'open' }, 'unavailable'],
      [{ kind: 'unknown', cause: 'no answer' }, 'unavailable'],
    ];
    for (const [reading, kind] of rows)
      it(`the chain shows ${reading.kind}: ${kind}`, async () => {
        till.peer.script.verify = async () => ({
          kind: 'refused',
          reason: 'invalid_exact_evm_nonce_already_used',
          nonceSpent: true,
        });
        till.peer.script.reconcile = async () => reading;
        assert.equal((await take()).kind, kind);
        assert.deepEqual(till.peer.names(), ['verify', 'reconcile']);
      });
  });

  describe('an uncertain settlement', () => {
    beforeEach(async () => {
      till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer', transaction: HASH });
      const sale = await take();
      assert.ok(sale.kind === 'uncertain' && sale.resignSafe && sale.transaction === HASH);
      assert.equal((await till.ledger.read(till.terms.payId))?.leaseUntil, 0, 'the same proof may ask again at once');
      till.peer.asked.length = 0;
    });

    it('found on the chain: paid, without a second settlement', async () => {
      till.peer.script.reconcile = async () => ({ kind: 'settled', transaction: HASH });
      assert.equal((await take()).kind, 'paid');
      assert.deepEqual(till.peer.names(), ['reconcile']);
    });

    it('shown worthless: refused for good', async () => {
      till.peer.script.reconcile = async () => ({ kind: 'refused', reason: 'expired' });
      assert.equal((await take()).kind, 'refused');
      assert.equal(await state(), 'refused');
    });

    it('still open: sent again as what it was, knowing that it was sent before', async () => {
      till.peer.script.settle = async () => ({ kind: 'settled', transaction: HASH });
      const dearer = { ...OFFER, amount: '900' } as PaymentRequirements;
      assert.equal((await take({ offer: dearer })).kind, 'paid');
      assert.deepEqual(till.peer.asked, [
        { what: 'reconcile', amount: '7' },
        { what: 'verify', amount: '7' },
        { what: 'settle', amount: '7', sentBefore: true },
      ]);
    });

    it('open, but refused now: stays uncertain; without a chain to ask no time is safe for signing anew', async () => {
      till.peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
      const short = await take();
      assert.ok(short.kind === 'uncertain' && short.resignSafe);
      till.peer.script.seesChain = false;
      const unseen = await take();
      assert.ok(unseen.kind === 'uncertain' && !unseen.resignSafe);
      till.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'there is no chain' });
      const later = await take();
      assert.ok(later.kind === 'uncertain' && !later.resignSafe);
      assert.ok(!till.peer.names().includes('settle'));
    });

    it('the chain is silent, or the ledger is: uncertain', async () => {
      till.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
      assert.equal((await take()).kind, 'uncertain');
      assert.equal((await take({}, broken({ note: silent, release: silent }))).kind, 'uncertain');
    });
  });

  it('a settlement that throws is uncertain, not an error of the call', async () => {
    till.peer.script.settle = async () => {
      throw new Error('bug');
    };
    assert.equal((await take()).kind, 'uncertain');
    assert.equal(await state(), 'settling');
  });

  it('settled on chain and not written: uncertain, and found again', async () => {
    const advance: PaymentLedger['advance'] = (command) =>
      command.to === 'settled' ? silent() : till.ledger.advance(command);
    const sale = await take({}, broken({ advance }));
    assert.ok(sale.kind === 'uncertain' && !sale.resignSafe, 'the money has moved');
    assert.equal((await till.ledger.read(till.terms.payId))?.leaseUntil, 0);
    till.peer.script.reconcile = async () => ({ kind: 'settled', transaction: HASH });
    assert.equal((await take()).kind, 'paid');
    assert.equal((await types()).filter((type) => type === 'payment.settled').length, 1);
  });

  it('a store that is silent before anything was sent: the call fails, nothing is sent, its events still reach the feed', async () => {
    const placed = order();
    await assert.rejects(createCashier(broken({ advance: silent }), till.peer.rail).take(placed), StoreError);
    assert.deepEqual(till.peer.names(), ['verify']);
    placed.journal.flush();
    assert.deepEqual(
      till.flushed.map(({ type }) => type),
      ['resource.requested'],
    );
    await assert.rejects(take({}, broken({ reserve: silent })), StoreError);
  });
});
