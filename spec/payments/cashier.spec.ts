import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import type { EventDraft } from '../../src/events/event.ts';
import { openJournal } from '../../src/events/journal.ts';
import { createCashier } from '../../src/payments/cashier.ts';
import { createDeliveryDesk } from '../../src/payments/delivery.ts';
import type { PaymentLedger, PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import { storedProof } from '../../src/payments/recall.ts';
import type { Order, Sale } from '../../src/payments/sale.ts';
import type { PaymentRail, Proof, RailVerdict, Reading, Settlement } from '../../src/payments/x402/rail.ts';
import type { PaymentRequirements } from '../../src/payments/x402/wire.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { type Store, StoreError } from '../../src/store/store.ts';
import { terms as sampleTerms } from './ledger/samples.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const OFFER = {
  scheme: 'exact',
  network: 'eip155:1',
  asset: '0xa',
  payTo: '0xb',
  amount: '7',
  maxTimeoutSeconds: 120,
  extra: {},
};

/** What the rail was asked, in order. */
interface Asked {
  readonly what: 'verify' | 'settle' | 'reconcile';
  readonly amount: string;
  readonly sentBefore?: boolean;
}

/** A rail that says what a test wants: the one peer that cannot be real here. */
function scriptedRail() {
  const asked: Asked[] = [];
  const script = {
    seesChain: true,
    verify: async (): Promise<RailVerdict> => ({ kind: 'valid' }),
    settle: async (_write: (transaction: { hash: string; raw: string }) => Promise<void>): Promise<Settlement> => ({
      kind: 'settled',
      transaction: HASH,
    }),
    reconcile: async (): Promise<Reading> => ({ kind: 'open' }),
  };
  const rail: PaymentRail = {
    facilitator: 'local',
    get seesChain() {
      return script.seesChain;
    },
    verify: (_proof, { amount }) => {
      asked.push({ what: 'verify', amount });
      return script.verify();
    },
    settle: (_proof, { amount }, writeAhead, history) => {
      asked.push({ what: 'settle', amount, ...(history === undefined ? {} : history) });
      return script.settle(writeAhead);
    },
    reconcile: (_proof, { amount }) => {
      asked.push({ what: 'reconcile', amount });
      return script.reconcile();
    },
    check: async () => undefined,
  };
  return { rail, script, asked, names: () => asked.map(({ what }) => what) };
}

describe('the cashier', () => {
  let clock: number;
  let store: Store;
  let ledger: PaymentLedger;
  let peer: ReturnType<typeof scriptedRail>;
  let gateOpen: boolean;
  let terms: PaymentTerms;
  let flushed: EventDraft[];

  beforeEach(() => {
    clock = 1_800_000_000_000;
    store = openSqliteStore({
      path: ':memory:',
      limits: { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 },
      now: () => clock,
    });
    ledger = store.ledger;
    peer = scriptedRail();
    gateOpen = true;
    flushed = [];
    const proof = { payload: { payload: {} }, signedBy: 'account' } as unknown as Proof;
    terms = { ...sampleTerms(), payId: randomBytes(32).toString('hex'), units: '7', proof: storedProof(proof) };
  });

  const order = (changes: Partial<Order> = {}): Order => {
    const call = { requestId: terms.requestId, resourceId: terms.resourceId, adapter: 'http' } as const;
    const journal = openJournal(call, { push: (event) => void flushed.push(event), withdraw: () => [] });
    journal.record('resource.requested');
    return {
      terms,
      offer: OFFER as PaymentRequirements,
      refusal: undefined,
      journal,
      repeatable: true,
      backendTimeoutMs: 10_000,
      elapsedMs: () => 1,
      gateOpen: () => gateOpen,
      ...changes,
    };
  };
  const take = (changes?: Partial<Order>, through = ledger): Promise<Sale> =>
    createCashier(through, peer.rail).take(order(changes));
  const later = (ms: number): void => {
    clock += ms;
  };
  const state = async (): Promise<string | undefined> => (await ledger.read(terms.payId))?.state;
  const types = async (): Promise<readonly string[]> =>
    (await store.feed.page({ limit: 100 })).events.map(({ type }) => type).toReversed();
  /** The ledger with some methods replaced. */
  const broken = (methods: Partial<PaymentLedger>): PaymentLedger => ({
    reserve: (command) => ledger.reserve(command),
    advance: (command) => ledger.advance(command),
    note: (...command) => ledger.note(...command),
    discard: (...command) => ledger.discard(...command),
    release: (command) => ledger.release(command),
    read: (payId) => ledger.read(payId),
    ...methods,
  });
  const silent = async (): Promise<never> => {
    throw new StoreError('gone');
  };

  it('paid: verify, then settle, with state, receipt and events in the same writes', async () => {
    const sale = await take();
    assert.equal(sale.kind, 'paid');
    assert.deepEqual(peer.asked, [
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false },
    ]);
    assert.equal(await state(), 'settled');
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
    const { receipts } = await store.receipts.page({ limit: 5 });
    assert.deepEqual(
      receipts.map(({ id, delivered, payment }) => [id, delivered, payment?.externalReference]),
      [[terms.receiptId, false, HASH]],
    );
    assert.deepEqual(flushed, [], 'nothing went another way');
  });

  it('the transaction is in the ledger before it is sent, and is not sent when it cannot be', async () => {
    peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      assert.equal((await ledger.read(terms.payId))?.transaction, HASH);
      return { kind: 'settled', transaction: HASH };
    };
    assert.equal((await take()).kind, 'paid');

    terms = { ...terms, payId: randomBytes(32).toString('hex') };
    let sent = false;
    peer.script.settle = async (write) => {
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
      peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
      assert.deepEqual(await take(), { kind: 'refused', reason: 'insufficient_funds', phase: 'verify' });
      assert.equal(await state(), undefined);
    });

    it('no verdict: 503 material, the reservation is gone', async () => {
      peer.script.verify = async () => ({ kind: 'unavailable', cause: 'down' });
      assert.equal((await take()).kind, 'unavailable');
      assert.equal(await state(), undefined);
    });

    it('by a call that lost its lease meanwhile: not its word to say', async () => {
      peer.script.verify = async () => {
        later(20_000);
        peer.script.verify = async () => ({ kind: 'valid' });
        assert.equal((await take()).kind, 'paid');
        return { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false };
      };
      assert.equal((await take()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

    it('by the settlement: final, with its event in the same write, and the same answer for the same proof', async () => {
      peer.script.settle = async () => ({ kind: 'refused', reason: 'insufficient_funds' });
      assert.deepEqual(await take(), {
        kind: 'refused',
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: true,
      });
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.rejected']);
      assert.deepEqual(await take(), { kind: 'refused', reason: 'insufficient_funds', phase: 'settle' });
      assert.deepEqual(peer.names(), ['verify', 'settle']);
    });

    it('that cannot be written are uncertain, never a 402', async () => {
      peer.script.settle = async () => ({ kind: 'refused', reason: 'insufficient_funds' });
      const advance: PaymentLedger['advance'] = async (command) =>
        command.to === 'refused' ? { kind: 'fenced' } : ledger.advance(command);
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
        peer.script.verify = async () => ({
          kind: 'refused',
          reason: 'invalid_exact_evm_nonce_already_used',
          nonceSpent: true,
        });
        peer.script.reconcile = async () => reading;
        assert.equal((await take()).kind, kind);
        assert.deepEqual(peer.names(), ['verify', 'reconcile']);
      });
  });

  describe('an uncertain settlement', () => {
    beforeEach(async () => {
      peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer', transaction: HASH });
      const sale = await take();
      assert.ok(sale.kind === 'uncertain' && sale.resignSafe && sale.transaction === HASH);
      assert.equal((await ledger.read(terms.payId))?.leaseUntil, 0, 'the same proof may ask again at once');
      peer.asked.length = 0;
    });

    it('found on the chain: paid, without a second settlement', async () => {
      peer.script.reconcile = async () => ({ kind: 'settled', transaction: HASH });
      assert.equal((await take()).kind, 'paid');
      assert.deepEqual(peer.names(), ['reconcile']);
    });

    it('shown worthless: refused for good', async () => {
      peer.script.reconcile = async () => ({ kind: 'refused', reason: 'expired' });
      assert.equal((await take()).kind, 'refused');
      assert.equal(await state(), 'refused');
    });

    it('still open: sent again as what it was, knowing that it was sent before', async () => {
      peer.script.settle = async () => ({ kind: 'settled', transaction: HASH });
      const dearer = { ...OFFER, amount: '900' } as PaymentRequirements;
      assert.equal((await take({ offer: dearer })).kind, 'paid');
      assert.deepEqual(peer.asked, [
        { what: 'reconcile', amount: '7' },
        { what: 'verify', amount: '7' },
        { what: 'settle', amount: '7', sentBefore: true },
      ]);
    });

    it('open, but refused now: stays uncertain; without a chain to ask no time is safe for signing anew', async () => {
      peer.script.verify = async () => ({ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false });
      const short = await take();
      assert.ok(short.kind === 'uncertain' && short.resignSafe);
      peer.script.seesChain = false;
      const unseen = await take();
      assert.ok(unseen.kind === 'uncertain' && !unseen.resignSafe);
      peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'there is no chain' });
      const later = await take();
      assert.ok(later.kind === 'uncertain' && !later.resignSafe);
      assert.ok(!peer.names().includes('settle'));
    });

    it('the chain is silent, or the ledger is: uncertain', async () => {
      peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
      assert.equal((await take()).kind, 'uncertain');
      assert.equal((await take({}, broken({ note: silent, release: silent }))).kind, 'uncertain');
    });
  });

  it('a settlement that throws is uncertain, not an error of the call', async () => {
    peer.script.settle = async () => {
      throw new Error('bug');
    };
    assert.equal((await take()).kind, 'uncertain');
    assert.equal(await state(), 'settling');
  });

  it('settled on chain and not written: uncertain, and found again', async () => {
    const advance: PaymentLedger['advance'] = (command) =>
      command.to === 'settled' ? silent() : ledger.advance(command);
    const sale = await take({}, broken({ advance }));
    assert.ok(sale.kind === 'uncertain' && !sale.resignSafe, 'the money has moved');
    assert.equal((await ledger.read(terms.payId))?.leaseUntil, 0);
    peer.script.reconcile = async () => ({ kind: 'settled', transaction: HASH });
    assert.equal((await take()).kind, 'paid');
    assert.equal((await types()).filter((type) => type === 'payment.settled').length, 1);
  });

  it('a store that is silent before anything was sent: the call fails, nothing is sent, its events still reach the feed', async () => {
    const placed = order();
    await assert.rejects(createCashier(broken({ advance: silent }), peer.rail).take(placed), StoreError);
    assert.deepEqual(peer.names(), ['verify']);
    placed.journal.flush();
    assert.deepEqual(
      flushed.map(({ type }) => type),
      ['resource.requested'],
    );
    await assert.rejects(take({}, broken({ reserve: silent })), StoreError);
  });

  describe('the gate', () => {
    it('closed: nothing is even reserved', async () => {
      gateOpen = false;
      assert.equal((await take()).kind, 'gate_closed');
      assert.deepEqual([await state(), peer.names()], [undefined, []]);
    });

    it('that closes while the rail verifies: nothing is sent, and the proof works on the next pod', async () => {
      peer.script.verify = async () => {
        gateOpen = false;
        return { kind: 'valid' };
      };
      assert.equal((await take()).kind, 'gate_closed');
      assert.deepEqual(peer.names(), ['verify']);
      gateOpen = true;
      peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await take()).kind, 'paid');
    });
  });

  describe('leases', () => {
    it('hold while the rail verifies, settles and the merchant delivers; after that the next attempt takes over', async () => {
      const during = async (ms: number): Promise<Sale['kind']> => {
        later(ms);
        return (await take()).kind;
      };
      peer.script.verify = async () => {
        assert.equal(await during(9_500), 'in_flight');
        return { kind: 'valid' };
      };
      peer.script.settle = async () => {
        assert.equal(await during(60_000), 'in_flight');
        return { kind: 'settled', transaction: HASH };
      };
      assert.equal((await take()).kind, 'paid');
      assert.equal(await during(10_000 + 120_000), 'in_flight');
      assert.equal(await during(60_000), 'paid', 'a delivery that died is resumed');
    });
  });

  describe('a payment that was not delivered', () => {
    const fail = async (requestWritten: boolean): Promise<void> => {
      const sale = await take();
      assert.ok(sale.kind === 'paid');
      const desk = createDeliveryDesk(ledger, () => assert.fail('written'));
      const facts = { requestId: 'r', backendStatus: 0, durationMs: 1, journal: order().journal };
      await desk.undelivered(sale.record, { ...facts, failure: 'BACKEND_ERROR', requestWritten });
    };

    it('is collected when the merchant may be asked twice', async () => {
      await fail(true);
      assert.equal((await take()).kind, 'paid');
      assert.deepEqual(peer.names(), ['verify', 'settle']);
    });

    it('is not sent twice to a merchant who may not be', async () => {
      await fail(true);
      const sale = await take({ repeatable: false });
      assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
    });

    it('is sent when it certainly never reached the merchant, once: a crash on the way must not let it out again', async () => {
      await fail(false);
      assert.equal((await take({ repeatable: false })).kind, 'paid');
      later(300_000);
      const sale = await take({ repeatable: false });
      assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
    });
  });

  it('written, but every reply lost: the request has not left, so the same proof collects whatever the method', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await ledger.advance(command);
      return command.to === 'settled' ? silent() : answer;
    };
    assert.equal((await take({ repeatable: false }, broken({ advance }))).kind, 'uncertain');
    assert.equal(await state(), 'settled');
    const note: PaymentLedger['note'] = async (...command) => {
      await ledger.note(...command);
      return silent();
    };
    await assert.rejects(take({ repeatable: false }, broken({ note })), StoreError);
    assert.equal((await take({ repeatable: false })).kind, 'paid');
    later(300_000);
    assert.equal((await take({ repeatable: false })).kind, 'spent', 'now it may have left');
  });

  it('a proof that was let through for a record which is gone is refused after all', async () => {
    const refused = await take({ refusal: 'invalid_exact_evm_payload_authorization_valid_before' });
    assert.deepEqual(refused, {
      kind: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      phase: 'verify',
    });
    assert.deepEqual([await state(), peer.names()], [undefined, []]);
  });

  it('what is delivered is over, and the record forgets the proof and the request', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid');
    const desk = createDeliveryDesk(ledger, () => assert.fail('written'));
    const { journal } = order();
    await desk.delivered(sale.record, { requestId: terms.requestId, backendStatus: 200, durationMs: 1, journal });
    const record = await ledger.read(terms.payId);
    assert.deepEqual([record?.state, record?.proof, record?.backendRequest], ['delivered', '{}', '{}']);
    const again = await take();
    assert.ok(again.kind === 'spent' && again.state === 'delivered');
  });

  it('a delivery that cannot be written is told, and its events still reach the feed', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid');
    const told: string[] = [];
    const desk = createDeliveryDesk(broken({ advance: silent }), ({ payId }) => void told.push(payId));
    await desk.delivered(sale.record, { requestId: 'r', backendStatus: 200, durationMs: 1, journal: order().journal });
    assert.deepEqual(told, [terms.payId]);
    assert.deepEqual(
      flushed.map(({ type }) => type),
      ['resource.requested'],
    );
  });
});
