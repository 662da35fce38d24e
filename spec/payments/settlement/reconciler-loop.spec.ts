import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { type Bench, reconcilerBench } from './reconciler-bench.ts';
import { PAID } from './scripted-rail.ts';
import { freshTerms, NOON_MS, worldOfEachTest } from './world.ts';

describe('the loop of the reconciler', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, broken } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
  });
  const uncertain = async (): Promise<void> => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    world.peer.asked.length = 0;
    later(1_000);
  };

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

  it('tells once that the store is away, and again when it went away again', async () => {
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
    await uncertain();
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
