import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { LEASE_MS } from '../../../src/payments/settlement/attempt.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { type Bench, reconcilerBench } from './reconciler-bench.ts';
import { EXPIRED, FAILED, freshTerms, HASH, NOON_MS, PAID, worldOfEachTest } from './world.ts';

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

  it('looks further where all records of a look must wait, as those of a network that hangs', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'slow', leaseMs: LEASE_MS });
    const waiting = (await record()) ?? assert.fail();
    bench.running = new Set([waiting.payId]);
    const limits: number[] = [];
    const due: PaymentLedger['due'] = async (limit) => {
      limits.push(limit);
      return Array.from({ length: limits.length < 3 ? limit : 0 }, () => waiting);
    };
    const reconciler = bench.open(broken({ due }));
    for (let look = 0; look < 4; look += 1) await reconciler.round();
    assert.deepEqual(limits, [64, 128, 256, 64]);
  });

  it('a reservation that was taken over meanwhile is not', async () => {
    await world.diesReserved();
    const due: PaymentLedger['due'] = async (limit) => {
      const found = await world.ledger.due(limit);
      assert.equal((await settleOnce()).kind, 'paid');
      return found;
    };
    await round(broken({ due }));
    assert.equal(await state(), 'settled');
  });

  it('a reservation that became a settlement meanwhile is given back at once: no call waits for an idle lease', async () => {
    await world.diesReserved();
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
    const payIds = bench.warnings.map(({ payId }) => payId);
    assert.deepEqual(payIds, [faulty]);
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

describe('the reconciler and what was never delivered', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, later, record, state, receipts } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
  });
  const round = (): Promise<void> => bench.open().round();
  const undelivered = async (more: Partial<typeof FAILED> | { readonly repeatable: boolean } = {}): Promise<Paid> => {
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 500, ...more });
    return result;
  };

  it('a backend that has failed six times, with growing pauses, is asked only for the buyer', async () => {
    bench.answers = false;
    await undelivered();
    const calls: number[] = [];
    for (let second = 0; second <= 3_600; second += 1) {
      const before = bench.delivered.length;
      await round();
      if (bench.delivered.length > before) calls.push(second);
      later(1_000);
    }
    assert.deepEqual(calls, [1, 3, 7, 15, 31]);
    const { state, dueAt = 0, settledAt = 0, tries } = (await record()) ?? {};
    assert.deepEqual([state, tries, dueAt], ['undelivered', 6, settledAt + DAY_MS]);
    bench.answers = true;
    assert.equal((await settleOnce()).kind, 'paid', 'the buyer may still ask');
  });

  describe('what was not collected', () => {
    for (const repeatable of [true, false])
      it(`${repeatable ? 'and the backend never answered' : 'and may not be sent again'} is due for a refund after a day`, async () => {
        bench.repeatable = repeatable;
        bench.answers = false;
        await undelivered({ repeatable });
        for (let hour = 0; hour < 24; hour += 1) {
          for (let minute = 0; minute < 10; minute += 1) await round();
          assert.equal(await state(), 'undelivered', `hour ${hour}`);
          later(hour === 23 ? 3_600_000 - 1 : 3_600_000);
        }
        await round();
        assert.equal(await state(), 'undelivered');
        for (let minute = 0; minute < 5; minute += 1) {
          later(60_000);
          await round();
        }
        assert.equal(await state(), 'refundDue');
        const [receipt, ...others] = await receipts();
        const metadata = { callId: world.terms.callId, refundDue: true };
        assert.deepEqual([receipt?.delivered, receipt?.metadata, others.length], [false, metadata, 0]);
        assert.equal(await world.countOf('payment.settled'), 1);
        const result = await settleOnce();
        assert.ok(result.kind === 'spent' && result.state === 'refundDue');
      });

    it('a hundred failed deliveries of a purchase without a secret are none: an onlooker may have caused them', async () => {
      for (let attempt = 0; attempt < 100; attempt += 1) await undelivered();
      later(3_600_000);
      await round();
      assert.equal(await state(), 'undelivered');
    });

    it('a hundred failed deliveries are a refund after an hour, whatever is left of the day', async () => {
      world.terms = { ...world.terms, tokenDigest: 'a'.repeat(64) };
      for (let attempt = 0; attempt < 99; attempt += 1) await undelivered();
      later(3_600_000);
      await round();
      assert.equal(await state(), 'undelivered', 'ninety-nine');
      await undelivered();
      later(60_000);
      await round();
      assert.equal(await state(), 'refundDue');
    });

    it('within an hour they are no refund: one outage may cause them all', async () => {
      for (let attempt = 0; attempt < 100; attempt += 1) await undelivered();
      later(60_000);
      await round();
      assert.equal(await state(), 'undelivered');
    });
  });

  it('a record that the store loses between two looks does not come back as a reservation that waits for a day', async () => {
    const { record: paid } = await pay();
    world.terms = freshTerms();
    const lost = { ...paid, ...world.terms, state: 'undelivered', tries: 6 } as const;
    await bench.open(world.broken({ due: async () => [lost] })).round();
    assert.ok(((await record())?.dueAt ?? 0) <= world.clock + LEASE_MS);
    later(LEASE_MS);
    await round();
    assert.equal(await record(), undefined);
  });
});

const HOUR_MS = 60 * 60 * 1_000;

describe('the loop of the reconciler and its bounds', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, state, broken } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
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
    await world.diesReserved();
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
