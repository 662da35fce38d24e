import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { keyDigest } from '../../../src/payments/settlement/stored-purchase.ts';
import { PAYMENT_CHANNEL } from '../../../src/payments/steps.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { stepsOf } from '../steps.ts';
import { HASH, PAID } from './scripted-rail.ts';
import { freshTerms, tillOfEachTest } from './till.ts';

const UNSENT = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' } as const;
const NO_FUNDS = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;

/** What a 402 would say. */
function refusal(sale: SettlementResult): unknown {
  assert.ok(sale.kind === 'refused', `${sale.kind} is no refusal`);
  assert.ok(SafeToRechallenge.is(sale.owed));
  const { reason, phase, recorded } = sale.owed;
  return { reason, phase, recorded };
}

/** The store says that it certainly wrote nothing. */
const away = async (): Promise<never> => {
  throw new StoreError(new Error('no connection'), false);
};

describe('the settler', () => {
  const till = tillOfEachTest();
  const { order, take, later, record, state, types, receipts, broken, silent } = till;

  it('paid: verify, then settle, with state, receipt and events in the same writes', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid' && sale.kept === undefined);
    assert.deepEqual(till.peer.asked, [
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false },
    ]);
    const { state, evidence, transaction } = sale.record;
    assert.deepEqual([state, evidence, transaction], ['settled', 'logs', HASH]);
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
    const [receipt, ...others] = await receipts();
    assert.deepEqual(
      [receipt?.id, receipt?.delivered, receipt?.payment?.externalReference, receipt?.metadata, others.length],
      [till.terms.receiptId, false, HASH, undefined, 0],
    );
    assert.deepEqual(till.flushed, [], 'nothing went another way');
  });

  it('tells every step of a payment when it has passed it', async () => {
    const steps = stepsOf(PAYMENT_CHANNEL, till.terms.payId);
    till.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      return PAID;
    };
    await take();
    assert.deepEqual(steps.end(), ['reserved', 'verified', 'settling', 'sending', 'signed', 'answered', 'settled']);
  });

  it('the lease stays with a call that was paid, and with no other', async () => {
    assert.equal((await take()).kind, 'paid');
    assert.deepEqual([...till.held], [till.terms.payId]);
    till.held.clear();
    for (const settle of [async () => UNSENT, async () => ({ kind: 'uncertain', cause: 'cut' }) as const]) {
      till.terms = freshTerms();
      till.peer.script.settle = settle;
      await take();
      assert.deepEqual([...till.held], []);
    }
    till.terms = freshTerms();
    await assert.rejects(take({}, broken({ advance: away })));
    assert.deepEqual([...till.held], []);
  });

  it('a facilitator that only says that the nonce is used: paid without a transaction, and the receipt says so', async () => {
    till.peer.script.settle = async () => ({ kind: 'settled', evidence: 'nonce' });
    const sale = await take();
    assert.ok(sale.kind === 'paid' && sale.record.transaction === undefined);
    const [receipt] = await receipts();
    assert.deepEqual([receipt?.payment?.externalReference, receipt?.metadata?.unconfirmed], ['', true]);
  });

  it('the transaction is in the ledger before it is sent, and is not sent when it cannot be', async () => {
    till.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      const { transaction, rawTransaction } = (await record()) ?? {};
      assert.deepEqual([transaction, rawTransaction], [HASH, '0xraw']);
      return PAID;
    };
    assert.equal((await take()).kind, 'paid');

    till.terms = freshTerms();
    let sent = false;
    till.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      sent = true;
      return PAID;
    };
    const fenced = broken({ note: async () => ({ kind: 'fenced' }) });
    assert.equal((await take({}, fenced)).kind, 'uncertain');
    assert.equal(sent, false);
  });

  describe('refusals', () => {
    it('before anything was sent: the reservation is gone, the proof may come again', async () => {
      till.peer.script.verify = async () => NO_FUNDS;
      assert.deepEqual(refusal(await take()), { reason: 'insufficient_funds', phase: 'verify', recorded: false });
      assert.equal(await record(), undefined);
      till.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await take()).kind, 'paid');
    });

    it('no verdict: 503 material, the reservation is gone', async () => {
      till.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'down' });
      assert.equal((await take()).kind, 'unavailable');
      assert.equal(await record(), undefined);
    });

    it('by a call that lost its lease meanwhile: not its word to say', async () => {
      till.peer.script.verify = async () => {
        later(20_000);
        till.peer.script.verify = async () => ({ kind: 'valid' });
        assert.equal((await take()).kind, 'paid');
        return NO_FUNDS;
      };
      assert.equal((await take()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

    it('by the settlement: final, with its event in the same write, and the same answer for the same proof', async () => {
      till.peer.script.settle = async () => UNSENT;
      assert.deepEqual(refusal(await take()), { reason: 'insufficient_funds', phase: 'settle', recorded: true });
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.rejected']);
      assert.deepEqual(refusal(await take()), { reason: 'insufficient_funds', phase: 'settle', recorded: false });
      assert.deepEqual(till.peer.names(), ['verify', 'settle']);
      assert.deepEqual(await receipts(), [], 'nobody paid');
    });

    it('that another attempt has overtaken are in flight, those that the store does not take uncertain, never a 402', async () => {
      till.peer.script.settle = async () => UNSENT;
      for (const [answer, kind] of [
        [async () => ({ kind: 'fenced' }) as const, 'in_flight'],
        [async () => ({ kind: 'lost' }) as const, 'uncertain'],
        [silent, 'uncertain'],
      ] as const) {
        till.terms = freshTerms();
        const advance: PaymentLedger['advance'] = async (command) =>
          command.to === 'refused' ? answer() : till.ledger.advance(command);
        assert.equal((await take({}, broken({ advance }))).kind, kind);
      }
    });
  });

  it('a store that is silent when a settlement is begun: nothing is sent, but the write may stand and be gone on with', async () => {
    const sale = await take({}, broken({ advance: silent }));
    assert.equal(sale.kind, 'uncertain');
    assert.deepEqual(till.peer.names(), ['verify']);
  });

  it('a store that is away before anything was sent: the call fails, nothing is sent, its events still reach the feed', async () => {
    const placed = order();
    await assert.rejects(till.settler(broken({ advance: away })).settle(placed), StoreError);
    assert.deepEqual(till.peer.names(), ['verify']);
    placed.journal.flush();
    assert.deepEqual(
      till.flushed.map(({ type }) => type),
      ['resource.requested'],
    );
    await assert.rejects(take({}, broken({ reserve: silent })), StoreError);
  });

  it('keeps the digest of a key, never the key', async () => {
    const key = 'the-key-of-a-buyer';
    till.terms = { ...till.terms, keyDigest: keyDigest(till.terms.payId, key) };
    await take();
    const kept = await record();
    assert.equal(kept?.keyDigest, till.terms.keyDigest);
    assert.ok(!JSON.stringify(kept).includes(key));
    assert.notEqual(
      keyDigest('a', 'b'),
      keyDigest('ab', ''),
      'where the payment ends and the key begins is told apart',
    );
  });
});
