import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { fencingToken, type PaymentLedger, type PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { LEASE_MS } from '../../../src/payments/settlement/reservations.ts';
import { type Bench, reconcilerBench } from './reconciler-bench.ts';
import { EXPIRED, HASH, PAID } from './scripted-rail.ts';
import { freshTerms, NOON_MS, worldOfEachTest } from './world.ts';

const HOUR_MS = 60 * 60 * 1_000;

describe('the loop of the reconciler and its bounds', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, recorder, facts, later, state, broken } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
  });

  /** Paid, never delivered, and due after so many milliseconds. */
  const dueIn = async (againMs: number): Promise<PaymentRecord> => {
    const { record } = await pay();
    const failed = { failure: { code: 'backend_status_500' }, requestWritten: true, repeatable: false } as const;
    await recorder().undelivered(record, { ...facts({ lease: { drop: () => undefined } }), ...failed });
    await world.ledger.note({ ...fencingToken(record), leaseMs: 0, againMs });
    return record;
  };

  it('no refund before the day is over, whenever it looks', async () => {
    bench.repeatable = false;
    await dueIn(23 * HOUR_MS);
    later(23 * HOUR_MS);
    await bench.open().round();
    assert.equal(await state(), 'undelivered');
    later(HOUR_MS);
    await bench.open().round();
    assert.equal(await state(), 'refundDue');
  });

  it('a settlement that nothing can decide is asked about for a day, and then left to an operator', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut', transaction: HASH });
    await settleOnce();
    world.peer.script.reconcile = async () => ({ kind: 'unknown', cause: 'no chain to ask' });
    const { validBefore, payId } = world.terms;
    world.clock = validBefore * 1_000 + 23 * HOUR_MS;
    await bench.open().round();
    world.clock = validBefore * 1_000 + 24 * HOUR_MS;
    await bench.open().round();
    assert.equal(await state(), 'settling');
    world.clock += 60_000;
    world.peer.asked.length = 0;
    bench.warnings.length = 0;
    await bench.open().round();
    assert.deepEqual([world.peer.names(), bench.warnings.length, await state()], [[], 1, 'unresolved']);
    const [receipt, ...others] = await world.receipts();
    assert.deepEqual(
      [receipt?.payment?.status, receipt?.payment?.replayKey, receipt?.delivered, receipt?.metadata, others.length],
      ['unknown', payId, false, { callId: world.terms.callId }, 0],
    );

    // Never a 402, never a refund by itself, and never forgotten.
    world.peer.script.reconcile = async () => EXPIRED;
    later(365 * 24 * HOUR_MS);
    await bench.open().round();
    const asked = await settleOnce();
    assert.ok(asked.kind === 'uncertain' && asked.transaction === HASH);
    assert.deepEqual([world.peer.names(), await state()], [[], 'unresolved']);
    assert.deepEqual(await world.receipts(), [receipt]);
  });

  it('nothing while the gate is closed, not even what moves no money', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    later(LEASE_MS);
    world.gateOpen = false;
    await bench.open().round();
    assert.equal(await state(), 'reserved');
    world.gateOpen = true;
    await bench.open().round();
    assert.equal(await state(), undefined);
  });

  it('eight settlements at once and not nine', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    for (let count = 0; count < 12; count += 1) await settleOnce({ terms: freshTerms() });
    later(1_000);
    let running = 0;
    world.peer.script.reconcile = () => {
      running += 1;
      return new Promise(() => undefined);
    };
    const reconciler = bench.open();
    reconciler.start();
    await bench.pass(3_000);
    assert.equal(running, 8);
    await Promise.all([reconciler.stop(1_000), bench.pass(1_000)]);
  });

  it('a backend that hangs does not delay settlements: four deliveries at once', async () => {
    world.peer.script.settle = async () => PAID;
    for (let count = 0; count < 10; count += 1) await settleOnce({ terms: freshTerms() });
    later(LEASE_MS);
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    world.terms = freshTerms();
    await settleOnce();
    later(2_000);
    let delivering = 0;
    bench.hang = () => {
      delivering += 1;
    };
    world.peer.script.reconcile = async () => PAID;
    const reconciler = bench.open();
    reconciler.start();
    await bench.pass(3_000);
    assert.equal(await state(), 'settled', 'resolved, and now waiting for the backend like the others');
    assert.ok(delivering <= 5, `${delivering} deliveries hang`);
    await Promise.all([reconciler.stop(1_000), bench.pass(1_000)]);
  });

  it('looks every 300 to 600 ms', async () => {
    for (const [random, ms] of [
      [0, 300],
      [0.5, 450],
    ] as const) {
      bench = reconcilerBench(world);
      let looks = 0;
      const due: PaymentLedger['due'] = async () => {
        looks += 1;
        return [];
      };
      const reconciler = bench.open(broken({ due }), random);
      reconciler.start();
      await bench.pass(ms * 10 - 1);
      assert.equal(looks, 10);
      await bench.pass(1);
      assert.equal(looks, 11);
      await reconciler.stop(0);
      await bench.pass(10_000);
      assert.equal(looks, 11);
    }
  });

  it('warns once that the store is away, and again when it went away again', async () => {
    let away = true;
    const due: PaymentLedger['due'] = async (limit) => (away ? world.silent() : world.ledger.due(limit));
    const reconciler = bench.open(broken({ due }));
    for (const [gone, lines] of [
      [true, 1],
      [true, 1],
      [false, 1],
      [true, 2],
    ] as const) {
      away = gone;
      await reconciler.round();
      assert.equal(bench.warnings.length, lines);
    }
  });

  it('a settlement that hangs does not block the others, eight are worked on at once', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    const all = Array.from({ length: 10 }, freshTerms);
    for (const terms of all) await settleOnce({ terms });
    world.clock = NOON_MS + 1_000;
    let hanging = 0;
    const answered = Promise.withResolvers<void>();
    world.peer.script.reconcile = async () => {
      hanging += 1;
      if (hanging > 7) return PAID;
      await answered.promise;
      return PAID;
    };
    const reconciler = bench.open();
    reconciler.start();
    await bench.pass(2_000);
    const states = await Promise.all(all.map(async ({ payId }) => (await world.ledger.read(payId))?.state));
    assert.deepEqual(states.toSorted(), [...Array(7).fill('settling'), ...Array(3).fill('undelivered')]);
    const stopped = reconciler.stop(5_000);
    answered.resolve();
    await bench.pass(0);
    await stopped;
    const after = await Promise.all(all.map(async ({ payId }) => (await world.ledger.read(payId))?.state));
    assert.deepEqual(new Set(after), new Set(['undelivered']), 'what runs is brought to its end');
  });

  it('stops after its time, whatever hangs', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await settleOnce();
    later(1_000);
    world.peer.script.reconcile = () => new Promise(() => undefined);
    const reconciler = bench.open();
    reconciler.start();
    await bench.pass(10);
    let stopped = false;
    void reconciler.stop(2_000).then(() => {
      stopped = true;
    });
    await bench.pass(1_999);
    assert.equal(stopped, false);
    await bench.pass(1);
    assert.equal(stopped, true);
  });
});
