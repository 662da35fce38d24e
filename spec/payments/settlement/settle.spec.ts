import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { keyDigest } from '../../../src/payments/settlement/stored-purchase.ts';
import { PAYMENT_CHANNEL } from '../../../src/payments/steps.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { stepsOf } from '../steps.ts';
import { HASH, PAID } from './scripted-rail.ts';
import { freshTerms, refusalIn, worldOfEachTest } from './world.ts';

const UNSENT = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' } as const;
const PROOF = 'A'.repeat(22);
const NO_FUNDS = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;

describe('the settler', () => {
  const world = worldOfEachTest();
  const { requestWith, settleOnce, later, record, state, types, receipts, broken, silent } = world;

  it('paid: verify, then settle, with state, receipt and events in the same writes', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid' && result.kept === undefined);
    assert.deepEqual(world.peer.asked, [
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false },
    ]);
    const { state, evidence, transaction } = result.record;
    assert.deepEqual([state, evidence, transaction], ['settled', 'logs', HASH]);
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
    const [receipt, ...others] = await receipts();
    assert.deepEqual(
      [receipt?.id, receipt?.delivered, receipt?.payment?.externalReference, receipt?.metadata, others.length],
      [world.terms.receiptId, false, HASH, { callId: world.terms.callId }, 0],
    );
    assert.deepEqual(world.flushed, [], 'nothing went another way');
  });

  it('reports each step of a payment when it has passed it', async () => {
    const steps = stepsOf(PAYMENT_CHANNEL, world.terms.payId);
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      return PAID;
    };
    await settleOnce();
    assert.deepEqual(steps.end(), ['verified', 'settling', 'sending', 'signed', 'answered', 'settled']);
  });

  it('the lease stays with a call that was paid, and with no other', async () => {
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual([...world.held], [world.terms.payId]);
    world.held.clear();
    for (const settle of [async () => UNSENT, async () => ({ kind: 'uncertain', cause: 'cut' }) as const]) {
      world.terms = freshTerms();
      world.peer.script.settle = settle;
      await settleOnce();
      assert.deepEqual([...world.held], []);
    }
    world.terms = freshTerms();
    await assert.rejects(settleOnce({}, broken({ reserve: world.away })));
    assert.deepEqual([...world.held], []);
  });

  it('the transaction is in the ledger before it is sent, and is not sent when it cannot be', async () => {
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      const { transaction, rawTransaction } = (await record()) ?? {};
      assert.deepEqual([transaction, rawTransaction], [HASH, '0xraw']);
      return PAID;
    };
    assert.equal((await settleOnce()).kind, 'paid');

    world.terms = freshTerms();
    let sent = false;
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      sent = true;
      return PAID;
    };
    const fenced = broken({ note: async () => ({ kind: 'fenced' }) });
    assert.equal((await settleOnce({}, fenced)).kind, 'uncertain');
    assert.equal(sent, false);
  });

  describe('refusals', () => {
    it('before anything was sent: the reservation is gone, the proof may come again', async () => {
      world.peer.script.verify = async () => NO_FUNDS;
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'verify',
        recorded: false,
      });
      assert.equal(await record(), undefined);
      world.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await settleOnce()).kind, 'paid');
    });

    it('no verdict: 503 material, the reservation is gone', async () => {
      world.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'down' });
      assert.equal((await settleOnce()).kind, 'unavailable');
      assert.equal(await record(), undefined);
    });

    it('by a call that lost its lease meanwhile: in flight', async () => {
      world.peer.script.verify = async () => {
        later(20_000);
        world.peer.script.verify = async () => ({ kind: 'valid' });
        assert.equal((await settleOnce({}, broken({}))).kind, 'paid', 'in another process');
        return NO_FUNDS;
      };
      assert.equal((await settleOnce()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

    it('by the settlement: final, with its event in the same write, and the same answer for the same proof', async () => {
      world.peer.script.settle = async () => UNSENT;
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: true,
      });
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.rejected']);
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: false,
      });
      assert.deepEqual(world.peer.names(), ['verify', 'settle']);
      assert.deepEqual(await receipts(), [], 'nothing was paid');
    });

    it('that another attempt has overtaken are in flight, those that the store does not take uncertain, never a 402', async () => {
      world.peer.script.settle = async () => UNSENT;
      for (const [answer, kind] of [
        [async () => ({ kind: 'fenced' }) as const, 'in_flight'],
        [async () => ({ kind: 'lost' }) as const, 'uncertain'],
        [silent, 'uncertain'],
      ] as const) {
        world.terms = freshTerms();
        const advance: PaymentLedger['advance'] = async (command) =>
          command.to === 'refused' ? answer() : world.ledger.advance(command);
        assert.equal((await settleOnce({}, broken({ advance }))).kind, kind);
      }
    });
  });

  it('a claim without a reply is repeated, and settled once', async () => {
    let asked = 0;
    const reserve: PaymentLedger['reserve'] = async (command) => {
      asked += 1;
      const answer = await world.ledger.reserve(command);
      return asked === 1 ? silent() : answer;
    };
    assert.equal((await settleOnce({}, broken({ reserve }))).kind, 'paid');
    assert.deepEqual([asked, world.peer.names()], [2, ['verify', 'settle']]);
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
  });

  it('a claim that no reply confirms is uncertain: nothing is sent, and another attempt settles what stands', async () => {
    const reserve: PaymentLedger['reserve'] = async (command) => {
      await world.ledger.reserve(command);
      return silent();
    };
    const result = await settleOnce({}, broken({ reserve }));
    assert.equal(result.kind, 'uncertain');
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.partialDeepStrictEqual(await record(), { state: 'settling', leaseUntil: 0 });
    assert.equal((await settleOnce({ left: undefined })).kind, 'paid');
  });

  it('a claim that comes too late in the window of its proof begins nothing', async () => {
    world.peer.script.verify = async () => {
      later(115_000);
      return { kind: 'valid' };
    };
    assert.deepEqual(refusalIn(await settleOnce({ proof: PROOF })), {
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      phase: 'verify',
      recorded: false,
    });
    assert.deepEqual([await record(), world.peer.names()], [undefined, ['verify', 'reconcile']]);
  });

  it('a claim finds the refusal of a copy: its buyer was asked to pay anew, so nothing is sent', async () => {
    world.peer.script.verify = async () => {
      world.peer.script.verify = async () => NO_FUNDS;
      assert.equal((await settleOnce({ proof: PROOF }, broken({}))).kind, 'refused', 'in another process');
      return { kind: 'valid' };
    };
    assert.equal(refusalIn(await settleOnce({ proof: PROOF })) !== undefined, true);
    assert.deepEqual(world.peer.names(), ['verify', 'verify']);
  });

  it('a claim finds that a late copy was refused: nothing is sent', async () => {
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    world.peer.script.verify = async () => {
      assert.equal((await settleOnce({ proof: PROOF, refusal: reason }, broken({}))).kind, 'refused');
      return { kind: 'valid' };
    };
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'refused');
    assert.deepEqual(world.peer.names(), ['verify', 'reconcile']);
  });

  it('a store that is away before anything was sent: the call fails, nothing is sent, its events still reach the feed', async () => {
    const placed = requestWith();
    await assert.rejects(world.settler(broken({ reserve: world.away })).settle(placed), StoreError);
    assert.deepEqual(world.peer.names(), ['verify']);
    placed.journal.flush();
    assert.deepEqual(world.flushedTypes(), ['resource.requested']);
  });

  it('keeps the digest of a key, never the key', async () => {
    const key = 'the-key-of-a-buyer';
    world.terms = { ...world.terms, keyDigest: keyDigest(world.terms.payId, key) };
    await settleOnce();
    const kept = await record();
    assert.equal(kept?.keyDigest, world.terms.keyDigest);
    assert.ok(!JSON.stringify(kept).includes(key));
    assert.notEqual(keyDigest('a', 'b'), keyDigest('ab', ''), 'the border between payment and key counts');
  });
});
