import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { LEASE_MS } from '../../../src/payments/settlement/reservations.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { type Bench, reconcilerBench } from './reconciler-bench.ts';
import { EXPIRED, PAID } from './scripted-rail.ts';
import { FAILED, freshTerms, worldOfEachTest } from './world.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

describe('the reconciler finishes what attempts left behind', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, recorder, facts, later, record, state, types, broken } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
  });
  const round = (through?: PaymentLedger): Promise<void> => bench.open(through).round();
  const uncertain = async (): Promise<void> => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    world.peer.asked.length = 0;
    later(1_000);
  };

  it('a dead reservation is deleted: nothing was sent, the same proof works', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    later(LEASE_MS - 1);
    await round();
    assert.equal(await state(), 'reserved', 'it may still live');
    later(1);
    await round();
    assert.deepEqual([await record(), await types(), world.peer.names()], [undefined, [], []]);
  });

  it('an attempt of this process whose lease ended is not dead: its record stays with it', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'slow', leaseMs: LEASE_MS });
    later(LEASE_MS);
    bench.running = new Set([world.terms.payId]);
    await round();
    assert.equal(await state(), 'reserved');
    bench.running = new Set();
    await round();
    assert.equal(await record(), undefined);
  });

  it('a reservation that was taken over meanwhile is not', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    later(LEASE_MS);
    const due: PaymentLedger['due'] = async (limit) => {
      const found = await world.ledger.due(limit);
      assert.equal((await settleOnce()).kind, 'paid');
      return found;
    };
    await round(broken({ due }));
    assert.equal(await state(), 'settled');
  });

  it('a reservation that became a settlement meanwhile is given back at once: no call waits for an idle lease', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    later(LEASE_MS);
    const due: PaymentLedger['due'] = async (limit) => {
      const found = await world.ledger.due(limit);
      await uncertain();
      return found;
    };
    await round(broken({ due }));
    const { state: now, leaseUntil, dueAt } = (await record()) ?? {};
    assert.deepEqual([now, leaseUntil], ['settling', 0]);
    world.peer.script.reconcile = async () => PAID;
    later(1);
    await round();
    assert.equal(await state(), 'undelivered', `looked at again, due at ${dueAt}`);
  });

  describe('an uncertain settlement', () => {
    it('found on the chain: settled, fetched from the backend, and kept for its buyer', async () => {
      await uncertain();
      world.peer.script.reconcile = async () => PAID;
      await round();
      assert.deepEqual(world.peer.names(), ['reconcile']);
      assert.equal(bench.delivered.length, 1);
      const { state, reason, leaseUntil, tries } = (await record()) ?? {};
      assert.deepEqual([state, reason, leaseUntil, tries], ['undelivered', 'answer_kept', 0, 1]);
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled', 'backend.called']);
      const result = await settleOnce({ repeatable: false });
      assert.ok(result.kind === 'paid' && result.kept !== undefined);
    });

    it('shown worthless: refused for good', async () => {
      await uncertain();
      world.peer.script.reconcile = async () => EXPIRED;
      await round();
      assert.equal(await state(), 'refused');
      assert.equal((await types()).at(-1), 'payment.rejected');
    });

    it('still open: sent again, because its buyer waits for it', async () => {
      await uncertain();
      world.peer.script.settle = async () => PAID;
      await round();
      assert.deepEqual(world.peer.asked, [
        { what: 'reconcile', amount: '7' },
        { what: 'settle', amount: '7', sentBefore: true },
      ]);
      assert.equal(await state(), 'undelivered');
    });

    it('unknown: asked again with growing pauses, and warned of when it takes a minute', async () => {
      await uncertain();
      world.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
      const asked: number[] = [];
      for (let second = 1; second <= 600; second += 1) {
        const before = world.peer.asked.length;
        await round();
        if (world.peer.asked.length > before) asked.push(second);
        later(1_000);
      }
      const pauses = asked.slice(1).map((at, i) => at - (asked[i] ?? 0));
      assert.deepEqual(
        pauses,
        pauses.toSorted((a, b) => a - b),
      );
      assert.deepEqual([pauses[0], pauses.at(-1)], [1, 60]);
      assert.ok(asked.length > 15 && asked.length < 30, `${asked.length} questions in ten minutes`);
      assert.ok(bench.warnings.length >= 1 && bench.warnings.length <= 6, `${bench.warnings.length} warnings`);
      assert.equal(bench.warnings[0]?.payId, world.terms.payId);
    });
  });

  describe('a delivery that died', () => {
    it('whose request may be repeated is made for the buyer, who finds it kept', async () => {
      await pay();
      later(LEASE_MS);
      await round();
      assert.equal(bench.delivered.length, 1);
      assert.equal((await record())?.reason, 'answer_kept');
    });

    it('whose request may not be repeated waits for its buyer, and the backend is not called', async () => {
      bench.repeatable = false;
      await pay();
      later(LEASE_MS);
      await round();
      assert.equal(bench.delivered.length, 0);
      const { state, dueAt = 0, settledAt = 0 } = (await record()) ?? {};
      assert.deepEqual([state, dueAt], ['undelivered', settledAt + DAY_MS]);
    });

    it('after its answer was kept is left alone', async () => {
      const result = await pay();
      const gone = { ...FAILED, failure: { code: 'client_gone' } };
      await recorder().undelivered(result.record, { ...facts(result, { answer: keptAnswer() }), ...gone });
      await pay();
      later(LEASE_MS);
      await round();
      assert.equal(bench.delivered.length, 0);
      const { leaseUntil, dueAt = 0, settledAt = 0 } = (await record()) ?? {};
      assert.deepEqual([leaseUntil, dueAt], [0, settledAt + DAY_MS]);
    });
  });

  it('a purchase with a key is finished all the same: the record knows its digest', async () => {
    world.terms = { ...world.terms, keyDigest: 'a'.repeat(64) };
    await pay();
    later(LEASE_MS);
    await round();
    assert.equal(bench.delivered.length, 1);
  });

  it('a fault with one record is a warning and leaves the others alone; so is a store that is away', async () => {
    await pay();
    const faulty = world.terms.payId;
    world.terms = freshTerms();
    await pay();
    later(LEASE_MS);
    const reserve: PaymentLedger['reserve'] = (command) =>
      command.terms.payId === faulty ? world.silent() : world.ledger.reserve(command);
    await round(broken({ reserve }));
    assert.equal(await state(), 'undelivered');
    assert.deepEqual(
      bench.warnings.map(({ payId }) => payId),
      [faulty],
    );
    await round(broken({ due: world.silent }));
    assert.equal(bench.warnings.length, 2);
  });

  it('drops its lease also when the delivery fails', async () => {
    await pay();
    world.held.clear();
    later(LEASE_MS);
    bench.fault = new Error('bug');
    await round();
    assert.deepEqual([world.held.size, bench.warnings.length], [0, 1]);
  });
});
